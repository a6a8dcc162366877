// Turns names that come from other processes into paths inside a folder.
#pragma once

#include <string>

#include "common/base/status.h"

namespace dt {

// "folder/name". Malformed unless the name is one part of a path that stays below the folder.
Result<std::string> PathBelow(const std::string& folder, const std::string& name);

}  // namespace dt
