// Shares out orders to train to workers that run asynchronously without a bound, as they ask, so
// that a faster one does more. An order of n steps has n × workers parts. A plain state machine.
#pragma once

#include <map>

#include "common/control/orders.h"

namespace dt::scheduler {

// The parts of one order that are left.
struct PartRange {
  uint64_t begin = 0, end = 0;
  DT_FIELDS(begin, end)
};
using WorkLeft = std::map<uint64_t, PartRange>;  // By order.

class WorkQueue {
 public:
  // REQUIRES: `left` outlives the queue.
  WorkQueue(uint32_t workers, WorkLeft& left) : workers_(workers), left_(left) {}

  void Open(uint64_t order, uint64_t steps);
  void Close(uint64_t order) { left_.erase(order); }
  // The next parts of the order: half of an even share of what is left, so that all end nearly at
  // once; one at least. None when nothing is left, or of an order that is not open.
  SplitMessage Next(uint64_t order);

 private:
  const uint32_t workers_;
  WorkLeft& left_;
};

}  // namespace dt::scheduler
