// One batch slice in memory, column by column. Filled by Dataset::Gather, never changed after.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"

namespace dt::worker {

// One column of `Batch::samples` samples. Exactly one of the two forms is filled.
struct BatchColumn {
  std::vector<float> floats;      // [samples]
  std::vector<Key> keys;          // [samples × length], or ragged: [offsets.back()]
  std::vector<uint32_t> offsets;  // Ragged only: [samples + 1]
  std::vector<float> weights;     // Weighted only: in the form of keys.
};

struct Batch {
  Step step = 0;
  SliceIndex slice = 0;
  uint32_t samples = 0;       // In this slice; may be 0 in a short last batch.
  uint32_t step_samples = 0;  // In the whole step: the divisor of losses.
  // Position of the slice's first sample in the epoch; dropout depends on it.
  uint64_t first_sample = 0;
  std::vector<BatchColumn> columns;  // In the order of Dataset::columns().
};

}  // namespace dt::worker
