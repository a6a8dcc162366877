#include "worker/exchange/row_sum.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::worker {

void RowSum::Begin(std::span<const std::span<const Key>> slices) {
  size_t all = 0;
  for (const std::span<const Key> slice : slices) all += slice.size();
  numbering_.Begin(all);
  keys_.clear();
  numbers_.resize(all);
  size_t at = 0;
  for (const std::span<const Key> slice : slices) {
    numbering_.Number(slice, std::span(numbers_).subspan(at, slice.size()), keys_);
    at += slice.size();
  }
}

// Keys are numbered by first appearance: a key with the next number appears for the first time.
void RowSum::Sum(std::span<const std::span<const float>> slices, size_t dim,
                 std::span<float> sums) const {
  DT_CHECK(sums.size() == keys_.size() * dim);
  size_t at = 0, seen = 0;
  for (const std::span<const float> slice : slices) {
    const float* grad = slice.data();
    DT_CHECK(at * dim + slice.size() <= numbers_.size() * dim);
    for (size_t i = 0; i < slice.size(); i += dim, grad += dim) {
      const size_t number = numbers_[at++];
      float* const sum = sums.data() + number * dim;
      if (number == seen) {
        std::copy_n(grad, dim, sum);
        ++seen;
        continue;
      }
      for (size_t d = 0; d < dim; ++d) sum[d] += grad[d];
    }
  }
}

}  // namespace dt::worker
