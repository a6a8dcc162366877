// Small steps on the file system that survive loss of power.
#pragma once

#include <string>

#include "common/base/status.h"

namespace dt {

// "writing <path>: No space left on device", with a hint.
Status DiskError(std::string_view doing, const std::string& path, int error);
Result<std::string> ReadWholeFile(const std::string& path);
// Under another name first, then renamed; on the disk when it returns.
Status WriteWholeFile(const std::string& path, const std::string& content);
// A file or a folder: what it holds is on the disk when it returns.
Status SyncPath(const std::string& path);
// XXH3-64 of the content.
Result<uint64_t> DigestOfFile(const std::string& path);

}  // namespace dt
