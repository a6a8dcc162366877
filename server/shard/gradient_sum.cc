#include "server/shard/gradient_sum.h"

#include "common/base/check.h"

namespace dt::server {

void GradientSum::Begin(size_t keys, size_t values) {
  keys_.clear();
  sums_.clear();
  keys_.reserve(keys);
  sums_.reserve(values);
  first_key_ = first_sum_ = 0;
}

void GradientSum::BeginTable(size_t keys, size_t dim) {
  DT_CHECK(keys_.size() + keys <= keys_.capacity());
  DT_CHECK(sums_.size() + keys * dim <= sums_.capacity());
  dim_ = dim;
  first_key_ = keys_.size();
  first_sum_ = sums_.size();
  index_.Reset(keys);
}

void GradientSum::Add(std::span<const Key> keys, FloatFormat format, const std::byte* gradients) {
  const size_t row_bytes = RowBytes(format, dim_);
  row_.resize(dim_);
  for (size_t i = 0; i < keys.size(); ++i, gradients += row_bytes) {
    const float* const gradient = FloatsOf(format, gradients, row_);
    const uint32_t at = index_.Find(keys[i]);
    if (at == KeyIndex::kAbsent) {
      index_.Insert(keys[i], static_cast<uint32_t>(keys_.size() - first_key_));
      keys_.push_back(keys[i]);
      sums_.insert(sums_.end(), gradient, gradient + dim_);
      continue;
    }
    float* const sum = sums_.data() + first_sum_ + size_t{at} * dim_;
    for (size_t d = 0; d < dim_; ++d) sum[d] += gradient[d];
  }
}

}  // namespace dt::server
