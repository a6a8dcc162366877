// The order of samples in an epoch, and how it is cut into steps and slices.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "worker/data/batch.h"

namespace dt::worker {

// The order of the samples of an epoch: position → row. A pure function of (seed, epoch, rows,
// window): the epoch's rows are cut into windows from a rotated start, windows are visited in
// shuffled order, and rows are shuffled within their window. With window 0 it is the identity.
// Cheap to copy; the positions of only one window at a time are in memory.
class EpochOrder {
 public:
  EpochOrder(uint64_t seed, uint64_t epoch, uint64_t rows, uint64_t window);
  // Appends the rows at positions [begin, end). REQUIRES: end <= rows.
  void Rows(uint64_t begin, uint64_t end, std::vector<uint64_t>& out);

 private:
  void Materialise(uint64_t window_number);
  uint64_t seed_, epoch_, rows_, window_, start_ = 0;
  uint64_t last_visit_ = 0;  // When the last window, which may be short, is visited.
  std::vector<uint64_t> window_order_;
  uint64_t held_ = ~uint64_t{0};  // The window in `permutation_`.
  std::vector<uint32_t> permutation_;
};

// The positions of step `step_in_epoch` of an epoch, and of slice k of n of a step: the first
// slices have ceil(count / n) positions, the last ones fewer or none.
SampleRange StepRange(uint64_t rows, uint32_t batch_size, uint64_t step_in_epoch);
SampleRange SliceRange(SampleRange step, SliceIndex k, uint32_t n);

}  // namespace dt::worker
