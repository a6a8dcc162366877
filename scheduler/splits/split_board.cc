#include "scheduler/splits/split_board.h"

#include <algorithm>

namespace dt::scheduler {

void SplitBoard::Open(uint64_t order, uint64_t steps) { open_[order] = {0, steps * workers_}; }

SplitMessage SplitBoard::Next(uint64_t order) {
  const auto found = open_.find(order);
  if (found == open_.end()) return {.order = order};
  Range& left = found->second;
  const uint64_t size = left.end - left.begin;
  const uint64_t share = std::min(size, std::max<uint64_t>(1, size / (2 * uint64_t{workers_})));
  const SplitMessage split{order, left.begin, left.begin + share};
  left.begin += share;
  return split;
}

}  // namespace dt::scheduler
