// Folders and their entries. No other code may list them, because the standard library's iterator
// may throw when a folder changes while it is read.
#pragma once

#include <filesystem>
#include <vector>

#include "common/base/status.h"

namespace dt {

// The folder's entries, sorted by path. Errors: NotFound if the folder does not exist; Unavailable,
// with the folder's name, if it cannot be read to its end.
Result<std::vector<std::filesystem::path>> ListFolder(const std::filesystem::path& folder);
// Like ListFolder, but empty on any error. For folders that need not exist.
std::vector<std::filesystem::path> ListFolderIfAny(const std::filesystem::path& folder);

}  // namespace dt
