#include "scheduler/shards/copy_rate.h"

#include <algorithm>

namespace dt::scheduler {
namespace {

constexpr Duration kWindow = seconds(5);
constexpr Duration kLeast = seconds(1);
constexpr Duration kBetweenPoints = milliseconds(200);

}  // namespace

void CopyRate::OnReport(TimePoint now, ProcessId server, uint64_t copied_bytes) {
  uint64_t& before = reported_.try_emplace(server, copied_bytes).first->second;
  bytes_ += copied_bytes - std::min(before, copied_bytes);
  before = copied_bytes;
  if (points_.empty() || now - points_.back().at >= kBetweenPoints) {
    points_.push_back({now, bytes_});
  }
  points_.back().bytes = bytes_;
  while (points_.size() > 2 && now - points_[1].at >= kWindow) points_.pop_front();
}

std::optional<double> CopyRate::bytes_per_second() const {
  if (points_.empty()) return std::nullopt;
  const Point &first = points_.front(), &last = points_.back();
  if (last.at - first.at < kLeast) return std::nullopt;
  return static_cast<double>(last.bytes - first.bytes) / SecondsBetween(first.at, last.at);
}

}  // namespace dt::scheduler
