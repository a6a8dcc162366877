// Sums gradients of equal keys in the order in which they are added, table by table. Kept between
// uses, so that it allocates nothing in steady state. Owned by one thread.
#pragma once

#include <span>
#include <vector>

#include "common/base/float_formats.h"
#include "server/table/key_index.h"

namespace dt::server {

class GradientSum {
 public:
  GradientSum() : index_(0) {}

  // Forgets all; room for as many keys and values, of all tables together.
  void Begin(size_t keys, size_t values);
  // From now on `keys` keys or fewer of another table, of `dim` values. REQUIRES: there is room.
  void BeginTable(size_t keys, size_t dim);
  // REQUIRES: gradients holds keys.size() rows of `dim` values in the format.
  void Add(std::span<const Key> keys, FloatFormat format, const std::byte* gradients);

  // Of the table: distinct keys in order of first appearance, and their sums beside them. Valid
  // until Begin.
  std::span<const Key> keys() const { return std::span(keys_).subspan(first_key_); }
  std::span<const float> sums() const { return std::span(sums_).subspan(first_sum_); }

 private:
  size_t dim_ = 0;
  size_t first_key_ = 0, first_sum_ = 0;  // Of the table.
  KeyIndex index_;
  std::vector<Key> keys_;
  std::vector<float> sums_;
  std::vector<float> row_;
};

}  // namespace dt::server
