// Divides training orders among asynchronous workers that ask for work, so that a faster worker
// does more. Used if staleness is unbounded. An order of n steps in k slices has n × k parts. What
// a lost worker has taken is handed out again, as nobody knows how much of it was done. A plain
// state machine.
#pragma once

#include <map>
#include <vector>

#include "common/control/messages.h"

namespace dt::scheduler {

struct PartRange {
  uint64_t begin = 0, end = 0;
  DT_FIELDS(begin, end)
};
// One order.
struct OpenWork {
  std::vector<PartRange> left;                        // Not handed out.
  std::map<ProcessId, std::vector<PartRange>> taken;  // Not known to be done.
  DT_FIELDS(left, taken)
};
// The state of the queue; a part of the job's record.
struct WorkRecord {
  std::map<uint64_t, OpenWork> open;        // By order number.
  std::map<ProcessId, SplitMessage> given;  // The last answer to each worker.
  DT_FIELDS(open, given)
};

class WorkQueue {
 public:
  // REQUIRES: `record` outlives the queue.
  explicit WorkQueue(WorkRecord& record) : record_(record) {}

  void Open(uint64_t order, uint64_t parts) { record_.open[order] = {{{0, parts}}, {}}; }
  void Close(uint64_t order) { record_.open.erase(order); }
  // The next parts of the order: half of an even share of what is left, and at least one, so that
  // all workers end at nearly the same time. Empty if nothing is left or the order is not open. A
  // request that comes again gets the same answer.
  SplitMessage Next(ProcessId worker, const SplitRequestMessage& request, uint32_t workers);
  // All that the worker has taken of the order is done.
  void SetDone(uint64_t order, ProcessId worker);
  // All that the worker has taken, and is not known to be done, is to be done by others.
  void GiveBack(ProcessId worker);

 private:
  WorkRecord& record_;
};

}  // namespace dt::scheduler
