// Sums row gradients of equal keys over the slices of a step as a shard does
// (server/shard/gradient_sum.h): slice after slice, from the first one's on. Keeps its memory
// between steps. One thread.
#pragma once

#include <span>
#include <vector>

#include "common/base/ids.h"
#include "worker/lookup/key_numbering.h"

namespace dt::worker {

class RowSum {
 public:
  // The keys of each slice in slice order: distinct within one.
  void Begin(std::span<const std::span<const Key>> slices);
  // All of them once, by first appearance. Valid until Begin.
  std::span<const Key> keys() const { return keys_; }
  // sums [keys, dim] of the slices' gradients, each [its keys, dim].
  void Sum(std::span<const std::span<const float>> slices, size_t dim, std::span<float> sums) const;

 private:
  KeyNumbering numbering_;
  std::vector<Key> keys_;
  std::vector<uint32_t> numbers_;  // Of all slices' keys, one after the other: among keys_.
};

}  // namespace dt::worker
