// Copies of files. Errors are those of the system, such as "No space left on device", which
// std::filesystem::copy_file may turn into "Input/output error".
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <system_error>

namespace dt {

// Copies the first `bytes` of `from`, or all if it has fewer, to the new file `to`.
std::error_code CopyFile(const std::filesystem::path& from, const std::filesystem::path& to,
                         uint64_t bytes = std::numeric_limits<uint64_t>::max());
// Makes `to`, which must not exist, a hard link to `from`, or a copy where there can be no link.
// For files that never change.
std::error_code LinkOrCopy(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace dt
