// The file "dense.bin" of a checkpoint, little-endian:
//
//   "DTDENSE1" | u32 arrays | array [arrays] | u64 digest
//   array: u32 name bytes, name, u32 dims, i64 dims…, f32 values…
//
// Arrays are in the order of names; the digest is the XXH3-64 of everything before it. Written by
// Parameters::Save.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/graph/graph.h"

namespace dt::worker {

struct DenseArray {
  std::string name;
  Shape shape;
  std::vector<float> values;
};
// Errors: NotFound; DataLoss naming file and offset, if the file is damaged.
Result<std::vector<DenseArray>> ReadDenseFile(const std::string& folder);

}  // namespace dt::worker
