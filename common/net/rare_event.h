// Counts events that a peer can cause as often as it likes, and limits how often they are logged:
// the first one, and then one a minute. Owned by one thread.
#pragma once

#include <cstdint>

#include "common/base/clock.h"

namespace dt {

class RareEvent {
 public:
  // Counts one event. Returns true if it may be logged.
  bool Count(TimePoint now) {
    ++so_far_;
    if (so_far_ > 1 && now < log_again_) return false;
    log_again_ = now + kLogInterval;
    return true;
  }
  uint64_t so_far() const { return so_far_; }

 private:
  static constexpr Duration kLogInterval = std::chrono::minutes(1);

  uint64_t so_far_ = 0;
  TimePoint log_again_{};
};

}  // namespace dt
