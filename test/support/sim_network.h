// A simulated network that drops, duplicates and delays (and so reorders) messages at random from a
// seed. The caller provides the time.
#pragma once

#include <map>
#include <random>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace dt {

struct Faults {
  double drop = 0, duplicate = 0;
  Duration delay_max = milliseconds(1);
};

template <class Message>
class SimNetwork {
 public:
  explicit SimNetwork(uint64_t seed) : random_(seed) {}

  void Misbehave(const Faults& faults) { faults_ = faults; }
  void Heal() { faults_ = {}; }

  void Put(TimePoint now, const Message& message) {
    if (Chance(faults_.drop)) return;
    const int copies = Chance(faults_.duplicate) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      std::uniform_int_distribution<int64_t> delay(1, faults_.delay_max.count());
      on_the_way_.emplace(now + Duration(delay(random_)), message);
    }
  }
  // Messages that have arrived by `now`, in order of arrival.
  std::vector<Message> Take(TimePoint now) {
    std::vector<Message> arrived;
    while (!on_the_way_.empty() && on_the_way_.begin()->first <= now) {
      arrived.push_back(std::move(on_the_way_.begin()->second));
      on_the_way_.erase(on_the_way_.begin());
    }
    return arrived;
  }
  bool Chance(double probability) {
    return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
  }
  uint64_t Below(uint64_t bound) {
    return std::uniform_int_distribution<uint64_t>(0, bound - 1)(random_);
  }

 private:
  std::mt19937_64 random_;
  Faults faults_;
  std::multimap<TimePoint, Message> on_the_way_;
};

}  // namespace dt
