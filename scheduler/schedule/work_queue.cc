#include "scheduler/schedule/work_queue.h"

#include <algorithm>

namespace dt::scheduler {

void WorkQueue::Open(uint64_t order, uint64_t steps) { left_[order] = {0, steps * workers_}; }

SplitMessage WorkQueue::Next(uint64_t order) {
  const auto found = left_.find(order);
  if (found == left_.end()) return {.order = order};
  PartRange& left = found->second;
  const uint64_t size = left.end - left.begin;
  const uint64_t share = std::min(size, std::max<uint64_t>(1, size / (2 * uint64_t{workers_})));
  const SplitMessage parts{order, left.begin, left.begin + share};
  left.begin += share;
  return parts;
}

}  // namespace dt::scheduler
