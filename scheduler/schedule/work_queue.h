// Divides training orders among asynchronous workers that ask for work, so that a faster worker
// does more. Used if staleness is unbounded. An order of n steps has n × workers parts. A plain
// state machine.
#pragma once

#include <map>

#include "common/control/orders.h"

namespace dt::scheduler {

// The parts of one order that have not been handed out.
struct PartRange {
  uint64_t begin = 0, end = 0;
  DT_FIELDS(begin, end)
};
using WorkLeft = std::map<uint64_t, PartRange>;  // By order number.

class WorkQueue {
 public:
  // REQUIRES: `left` outlives the queue.
  WorkQueue(uint32_t workers, WorkLeft& left) : workers_(workers), left_(left) {}

  void Open(uint64_t order, uint64_t steps);
  void Close(uint64_t order) { left_.erase(order); }
  // The next parts of the order: half of an even share of what is left, and at least one, so that
  // all workers end at nearly the same time. Empty if nothing is left or the order is not open.
  SplitMessage Next(uint64_t order);

 private:
  const uint32_t workers_;
  WorkLeft& left_;
};

}  // namespace dt::scheduler
