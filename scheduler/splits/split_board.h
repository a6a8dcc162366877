// Shares out training orders to workers that run apart without a bound, as they ask: who is faster
// does more. An order of n steps has n × workers parts. A plain state machine.
#pragma once

#include <map>

#include "common/control/orders.h"

namespace dt::scheduler {

class SplitBoard {
 public:
  explicit SplitBoard(uint32_t workers = 1) : workers_(workers) {}

  void Open(uint64_t order, uint64_t steps);
  void Close(uint64_t order) { open_.erase(order); }
  // The next parts of the order: half of an even share of what is left, so that all end nearly at
  // once; one at least. None when nothing is left, or of an order that is not open.
  SplitMessage Next(uint64_t order);

 private:
  struct Range {
    uint64_t begin = 0, end = 0;
  };
  uint32_t workers_;
  std::map<uint64_t, Range> open_;  // What is left.
};

}  // namespace dt::scheduler
