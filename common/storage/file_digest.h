// The digest of a file's content, for checkpoints.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace dt {

struct FileDigest {
  uint64_t bytes = 0;
  uint64_t digest = 0;  // XXH3-64: HashBytes of the whole content.
};

// Reads the file once, in pieces. Errors name the file: NotFound; Unavailable when reading fails.
Result<FileDigest> DigestOf(const std::string& path);

}  // namespace dt
