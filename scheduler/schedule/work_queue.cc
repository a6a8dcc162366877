#include "scheduler/schedule/work_queue.h"

#include <algorithm>

namespace dt::scheduler {

void WorkQueue::Open(uint64_t order, uint64_t steps) {
  record_.left[order] = {0, steps * workers_};
}

SplitMessage WorkQueue::Next(ProcessId worker, const SplitRequestMessage& request) {
  SplitMessage& given = record_.given[worker];
  if (given.number == request.number && given.order == request.order) return given;
  given = {.order = request.order, .number = request.number};
  const auto found = record_.left.find(request.order);
  if (found == record_.left.end()) return given;
  PartRange& left = found->second;
  const uint64_t size = left.end - left.begin;
  const uint64_t share = std::min(size, std::max<uint64_t>(1, size / (2 * uint64_t{workers_})));
  given.begin = left.begin;
  given.end = left.begin + share;
  left.begin += share;
  return given;
}

}  // namespace dt::scheduler
