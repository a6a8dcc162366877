// One file of a checkpoint, as its writer finished it.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/fields.h"

namespace dt {

struct CheckpointFile {
  std::string name;  // Relative to the checkpoint's folder.
  uint64_t bytes = 0;
  uint64_t digest = 0;  // XXH3-64 of the content.
  DT_FIELDS(name, bytes, digest)
  friend bool operator==(const CheckpointFile&, const CheckpointFile&) = default;
};

}  // namespace dt
