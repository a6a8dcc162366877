// Sums gradients of equal keys in the order in which they are added. Kept between uses, so that it
// allocates nothing in steady state. Owned by one thread.
#pragma once

#include <span>
#include <vector>

#include "server/table/key_index.h"

namespace dt::server {

class GradientSum {
 public:
  GradientSum() : index_(0) {}

  // Forgets all; room for `keys` keys of `dim` values.
  void Begin(size_t keys, size_t dim);
  // REQUIRES: gradients holds keys.size() * dim values.
  void Add(std::span<const Key> keys, std::span<const float> gradients);

  // Distinct keys in order of first appearance, and their sums beside them.
  std::span<const Key> keys() const { return keys_; }
  std::span<float> sums() { return sums_; }

 private:
  size_t dim_ = 0;
  KeyIndex index_;
  std::vector<Key> keys_;
  std::vector<float> sums_;
};

}  // namespace dt::server
