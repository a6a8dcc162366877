// Finds out whether things that come one after the other would wait for one another in a circle.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace dt {

class WaitCircle {
 public:
  void Add(uint32_t before, uint32_t after) {
    if (before != after) edges_.emplace_back(before, after);
  }
  // The members of a circle among vertices 0 to count - 1, each before the next one, and the first
  // one again at the end. Empty if there is none.
  std::vector<uint32_t> Find(uint32_t count) const;

 private:
  std::vector<std::pair<uint32_t, uint32_t>> edges_;
};

}  // namespace dt
