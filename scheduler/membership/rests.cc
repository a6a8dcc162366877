#include "scheduler/membership/rests.h"

#include <algorithm>

namespace dt::scheduler {
namespace {

constexpr Duration kForgotten = seconds(3600), kFirst = seconds(60);
constexpr int kDoublingsMax = 4;

}  // namespace

void Rests::OnInTheWay(TimePoint now, const std::string& host) {
  Rest& rest = by_host_[host];
  if (now - rest.last > kForgotten) rest.times = 0;
  ++rest.times;
  rest.last = now;
}

Duration Rests::Length(int times) {
  return times < 2 ? Duration() : kFirst * (1 << std::min(times - 2, kDoublingsMax));
}

Duration Rests::Left(TimePoint now, const std::string& host) const {
  const auto found = by_host_.find(host);
  if (found == by_host_.end()) return Duration();
  const auto& [times, last] = found->second;
  return std::max(Duration(), last + Length(times) - now);
}

}  // namespace dt::scheduler
