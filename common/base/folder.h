// What is in a folder: the only code that lists one, because the standard library's iterator may
// throw in the middle of a folder that changes.
#pragma once

#include <filesystem>
#include <vector>

#include "common/base/status.h"

namespace dt {

// The folder's entries, by name. Unavailable, naming the folder, if it cannot be read to its end;
// NotFound if it does not exist.
Result<std::vector<std::filesystem::path>> ListFolder(const std::filesystem::path& folder);
// The same, and nothing where there is an error: for folders that need not be there.
std::vector<std::filesystem::path> ListFolderIfAny(const std::filesystem::path& folder);

}  // namespace dt
