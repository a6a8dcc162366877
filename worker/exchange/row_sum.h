// Sums row gradients of equal keys over the slices of a step in the same order as a shard
// (server/shard/gradient_sum.h): slice after slice, beginning with the values of the first one.
// Keeps its memory between steps. Owned by one thread.
#pragma once

#include <span>
#include <vector>

#include "common/base/ids.h"
#include "worker/lookup/key_numbering.h"

namespace dt::worker {

class RowSum {
 public:
  // The keys of each slice in slice order; distinct within a slice.
  void Begin(std::span<const std::span<const Key>> slices);
  // All keys once, by first appearance. Valid until Begin.
  std::span<const Key> keys() const { return keys_; }
  // Sets `sums` [keys, dim] to the sums of the slices' gradients, each [its keys, dim].
  void Sum(std::span<const std::span<const float>> slices, size_t dim, std::span<float> sums) const;

 private:
  KeyNumbering numbering_;
  std::vector<Key> keys_;
  std::vector<uint32_t> numbers_;  // For all slices' keys, one after the other: the index in keys_.
};

}  // namespace dt::worker
