#include "worker/data/stream/stream_delays.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dt::worker {

void StreamDelays::OnFetched(Step step, std::vector<double> written) {
  fetched_.push_back({step, std::move(written)});
}

void StreamDelays::OnApplied(Step before, double now) {
  for (; !fetched_.empty() && fetched_.front().step < before; fetched_.pop_front()) {
    for (const double written : fetched_.front().written) {
      const double delay = std::max(now - written, kLeast);
      const auto bucket =
          static_cast<size_t>(std::ceil(std::log(delay / kLeast) / std::log(kRatio)));
      ++buckets_[std::min(bucket, kBuckets - 1)];
      ++count_;
    }
  }
}

double StreamDelays::Quantile(double share) const {
  const double wanted = share * static_cast<double>(count_);
  uint64_t so_far = 0;
  size_t bucket = 0;
  for (; bucket + 1 < kBuckets; ++bucket) {
    so_far += buckets_[bucket];
    if (static_cast<double>(so_far) >= wanted) break;
  }
  return kLeast * std::pow(kRatio, static_cast<double>(bucket));
}

}  // namespace dt::worker
