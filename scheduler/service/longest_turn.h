// The longest time between two turns of a loop in the last minute or two.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/clock.h"

namespace dt::scheduler {

class LongestTurn {
 public:
  void Turn(TimePoint now) {
    if (last_.has_value()) longest_ = std::max(longest_, now - *last_);
    last_ = now;
    if (now - begun_ < std::chrono::minutes(1)) return;
    begun_ = now;
    before_ = std::exchange(longest_, Duration::zero());
  }
  double seconds() const {
    return std::chrono::duration<double>(std::max(longest_, before_)).count();
  }

 private:
  std::optional<TimePoint> last_;
  TimePoint begun_{};  // When this minute began.
  Duration longest_{}, before_{};
};

}  // namespace dt::scheduler
