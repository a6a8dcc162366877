// Divides training orders among asynchronous workers that ask for work, so that a faster worker
// does more. Used if staleness is unbounded. An order of n steps has n × workers parts. A plain
// state machine.
#pragma once

#include <map>

#include "common/control/messages.h"

namespace dt::scheduler {

// The parts of one order that have not been handed out.
struct PartRange {
  uint64_t begin = 0, end = 0;
  DT_FIELDS(begin, end)
};
// The state of the queue; a part of the job's record.
struct WorkRecord {
  std::map<uint64_t, PartRange> left;       // By order number.
  std::map<ProcessId, SplitMessage> given;  // The last answer to each worker.
  DT_FIELDS(left, given)
};

class WorkQueue {
 public:
  // REQUIRES: `record` outlives the queue.
  WorkQueue(uint32_t workers, WorkRecord& record) : workers_(workers), record_(record) {}

  void Open(uint64_t order, uint64_t steps);
  void Close(uint64_t order) { record_.left.erase(order); }
  // The next parts of the order: half of an even share of what is left, and at least one, so that
  // all workers end at nearly the same time. Empty if nothing is left or the order is not open. A
  // request that comes again gets the same answer.
  SplitMessage Next(ProcessId worker, const SplitRequestMessage& request);

 private:
  const uint32_t workers_;
  WorkRecord& record_;
};

}  // namespace dt::scheduler
