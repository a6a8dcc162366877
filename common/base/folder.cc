#include "common/base/folder.h"

#include <algorithm>
#include <system_error>

namespace dt {

namespace fs = std::filesystem;

Result<std::vector<fs::path>> ListFolder(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  if (error == std::errc::no_such_file_or_directory) {
    return NotFound("there is no folder {}", folder.string());
  }
  if (error) return Unavailable("reading folder {}: {}", folder.string(), error.message());
  std::ranges::sort(entries);
  return entries;
}

std::vector<fs::path> ListFolderIfAny(const fs::path& folder) {
  Result<std::vector<fs::path>> entries = ListFolder(folder);
  return entries.ok() ? *std::move(entries) : std::vector<fs::path>();
}

}  // namespace dt
