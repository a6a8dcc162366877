// One batch slice in memory, column by column. Filled by Dataset::Gather, never changed after.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/ids.h"

namespace dt::worker {

// Positions in a list of samples.
struct SampleRange {
  uint64_t begin = 0, end = 0;
  uint64_t size() const { return end - begin; }
};

// One column. Exactly one of the two forms is filled: numbers of all samples, or ids of the
// worker's own samples.
struct BatchColumn {
  std::vector<float> floats;      // [samples × length]
  std::vector<Key> keys;          // [own samples × length], or ragged: [offsets.back()]
  std::vector<uint32_t> offsets;  // Ragged only: [own samples + 1]
  std::vector<float> weights;     // Weighted only: in the form of keys.
};

struct Batch {
  Step step = 0;
  uint64_t epoch = 0;  // Keys that are drawn depend on it. Evaluations have epoch 0.
  SliceIndex slice = 0;
  uint32_t samples = 0;  // In this slice; may be 0 in a short last batch.
  // In a team: the samples of the slice that this worker looks up; nothing: all of them.
  std::optional<SampleRange> part;
  uint32_t step_samples = 0;  // In the whole step: the divisor of losses.
  // Position of the slice's first sample in the epoch; dropout depends on it.
  uint64_t first_sample = 0;
  // Asynchronous workers, each of which computes with slice 0 alone: the slice of the step that
  // this is for the servers, and the least step of which this worker then has a slice to push.
  SliceIndex pushed_slice = 0;
  Step next_step = 0;
  std::vector<BatchColumn> columns;  // In the order of Dataset::columns().
  // Columns of ids whose ids are needed of all samples. In a team `whole` has these columns.
  std::vector<uint32_t> whole_columns;
  std::vector<BatchColumn> whole;  // By entry of whole_columns.

  SampleRange own() const { return part.value_or(SampleRange{0, samples}); }
  // A column with the ids of all samples. REQUIRES: whole_columns has it.
  const BatchColumn& WithAll(uint32_t column) const {
    if (!part) return columns[column];
    const auto at = std::ranges::find(whole_columns, column);
    return whole[static_cast<size_t>(at - whole_columns.begin())];
  }
};

}  // namespace dt::worker
