// Virtual time, chance and events of a simulation. One thread at a time: the one that runs the
// events, or the SimThread that an event has resumed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <utility>

#include "common/base/clock.h"

namespace dt::sim {

class World : public Clock {
 public:
  explicit World(uint64_t seed) : random_(seed) {}

  TimePoint Now() const override { return now_; }
  // Events of one time run in the order in which they were added.
  void At(TimePoint when, std::function<void()> event) {
    events_.emplace(std::pair(std::max(when, now_), ++last_), std::move(event));
  }
  void After(Duration delay, std::function<void()> event) { At(now_ + delay, std::move(event)); }
  // Runs the next event; false if there is none.
  bool RunNext() {
    if (events_.empty()) return false;
    auto next = events_.extract(events_.begin());
    now_ = next.key().first;
    next.mapped()();
    return true;
  }

  uint64_t Below(uint64_t bound) {
    return std::uniform_int_distribution<uint64_t>(0, bound - 1)(random_);
  }
  bool Chance(double probability) {
    return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
  }
  // Above zero, up to `max`.
  Duration UpTo(Duration max) { return Duration(1 + Below(static_cast<uint64_t>(max.count()))); }

 private:
  std::mt19937_64 random_;
  TimePoint now_ = TimePoint() + seconds(1000);
  uint64_t last_ = 0;
  std::map<std::pair<TimePoint, uint64_t>, std::function<void()>> events_;
};

}  // namespace dt::sim
