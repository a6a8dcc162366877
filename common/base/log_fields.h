// An event whose fields are known only when it happens.
#pragma once

#include <span>

#include "common/base/log.h"

namespace dt {

void LogInfo(std::string_view event, std::span<const LogField> fields);

}  // namespace dt
