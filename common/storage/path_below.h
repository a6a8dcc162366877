// Turns names that other processes sent into paths inside a folder.
#pragma once

#include <string>

#include "common/base/status.h"

namespace dt {

// Returns "folder/name". Malformed unless the name is one path component that stays inside the
// folder.
Result<std::string> PathBelow(const std::string& folder, const std::string& name);

}  // namespace dt
