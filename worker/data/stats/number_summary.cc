#include "worker/data/stats/number_summary.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace dt::worker {

void NumberSummary::Add(float value) {
  if (std::isnan(value)) {
    ++missing_;
    return;
  }
  const uint64_t hash = MixBits(++count_);
  min_ = count_ == 1 ? value : std::min(min_, value);
  max_ = count_ == 1 ? value : std::max(max_, value);
  const double from_mean = static_cast<double>(value) - mean_;
  mean_ += from_mean / static_cast<double>(count_);
  squares_ += from_mean * (static_cast<double>(value) - mean_);
  distinct_.Add(std::bit_cast<uint32_t>(value + 0.0f));  // -0 is 0.
  if (sample_ == 0 || (hash & mask_) != 0) return;
  kept_.emplace_back(hash, value);
  if (kept_.size() <= sample_) return;
  mask_ = 2 * mask_ + 1;
  std::erase_if(kept_, [this](const auto& kept) { return (kept.first & mask_) != 0; });
}

double NumberSummary::deviation() const {
  return std::sqrt(squares_ / static_cast<double>(count_));
}

std::vector<float> NumberSummary::Quantiles(size_t points) const {
  std::vector<float> sorted;
  for (const auto& [hash, value] : kept_) sorted.push_back(value);
  std::ranges::sort(sorted);
  std::vector<float> quantiles;
  for (size_t i = 0; i < points; ++i) {
    quantiles.push_back(sorted[i * (sorted.size() - 1) / (points - 1)]);
  }
  return quantiles;
}

}  // namespace dt::worker
