// "dense.bin" of a checkpoint, little-endian:
//
//   "DTDENSE1" | u32 arrays | each: u32 name bytes, name, u32 dims, i64 dims…, f32 values… | u64
//   digest
//
// in the order of names; the digest is the XXH3-64 of all before it. Written by Parameters::Save.
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
// Errors: NotFound; DataLoss for a damaged file, with the place.
Result<std::vector<DenseArray>> ReadDenseFile(const std::string& folder);

}  // namespace dt::worker
