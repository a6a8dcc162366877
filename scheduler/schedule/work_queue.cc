#include "scheduler/schedule/work_queue.h"

#include <algorithm>
#include <iterator>

namespace dt::scheduler {

SplitMessage WorkQueue::Next(ProcessId worker, const SplitRequestMessage& request,
                             uint32_t workers) {
  SplitMessage& given = record_.given[worker];
  if (given.number == request.number && given.order == request.order) return given;
  given = {.order = request.order, .number = request.number};
  const auto found = record_.open.find(request.order);
  if (found == record_.open.end() || found->second.left.empty()) return given;
  uint64_t size = 0;
  for (const PartRange& range : found->second.left) size += range.end - range.begin;
  const uint64_t share = std::max<uint64_t>(1, size / (2 * uint64_t{workers}));
  PartRange& first = found->second.left.front();
  given.begin = first.begin;
  given.end = std::min(first.end, first.begin + share);
  first.begin = given.end;
  if (first.begin == first.end) found->second.left.erase(found->second.left.begin());
  std::vector<PartRange>& taken = found->second.taken[worker];
  if (!taken.empty() && taken.back().end == given.begin) {
    taken.back().end = given.end;
  } else {
    taken.push_back({given.begin, given.end});
  }
  return given;
}

void WorkQueue::SetDone(uint64_t order, ProcessId worker) {
  const auto open = record_.open.find(order);
  if (open != record_.open.end()) open->second.taken.erase(worker);
}

void WorkQueue::GiveBack(ProcessId worker) {
  for (auto& [order, work] : record_.open) {
    const auto taken = work.taken.extract(worker);
    if (taken) std::ranges::copy(taken.mapped(), std::back_inserter(work.left));
  }
}

}  // namespace dt::scheduler
