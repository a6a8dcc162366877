#include "server/shard/gradient_sum.h"

#include "common/base/check.h"

namespace dt::server {

void GradientSum::Begin(size_t keys, size_t dim) {
  dim_ = dim;
  index_.Reset(keys);
  keys_.clear();
  sums_.clear();
  keys_.reserve(keys);
  sums_.reserve(keys * dim);
}

void GradientSum::Add(std::span<const Key> keys, std::span<const float> gradients) {
  DT_CHECK(gradients.size() == keys.size() * dim_);
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::span<const float> gradient = gradients.subspan(i * dim_, dim_);
    const auto fresh = static_cast<uint32_t>(keys_.size());
    const uint32_t at = index_.FindOrInsert(keys[i], fresh);
    if (at == fresh) {
      keys_.push_back(keys[i]);
      sums_.insert(sums_.end(), gradient.begin(), gradient.end());
      continue;
    }
    float* const sum = sums_.data() + size_t{at} * dim_;
    for (size_t d = 0; d < dim_; ++d) sum[d] += gradient[d];
  }
}

}  // namespace dt::server
