// Sums gradients of equal keys, table by table, in the order in which they are added. An object is
// used again and again, so that it allocates nothing in steady state. Owned by one thread.
#pragma once

#include <span>
#include <vector>

#include "common/base/float_formats.h"
#include "server/table/key_index.h"

namespace dt::server {

class GradientSum {
 public:
  GradientSum() : index_(0) {}

  // Forgets everything, and makes room for this many keys and values of all tables together.
  void Begin(size_t keys, size_t values);
  // Begins another table of at most `keys` keys with `dim` values each. REQUIRES: there is room.
  void BeginTable(size_t keys, size_t dim);
  // REQUIRES: `gradients` holds keys.size() rows of `dim` values in `format`.
  void Add(std::span<const Key> keys, FloatFormat format, const std::byte* gradients);

  // The current table's distinct keys in order of first appearance, and their sums in the same
  // order. Valid until Begin.
  std::span<const Key> keys() const { return std::span(keys_).subspan(first_key_); }
  std::span<const float> sums() const { return std::span(sums_).subspan(first_sum_); }

 private:
  size_t dim_ = 0;
  size_t first_key_ = 0, first_sum_ = 0;  // Where the current table begins.
  KeyIndex index_;
  std::vector<Key> keys_;
  std::vector<float> sums_;
  std::vector<float> row_;
};

}  // namespace dt::server
