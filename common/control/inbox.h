// The messages of the scheduler that have arrived and that the process has not taken yet. It takes
// an order when it begins to carry it out. Not safe for several threads.
#pragma once

#include <deque>

#include "common/control/messages.h"

namespace dt {

class Inbox {
 public:
  void Add(ControlMessage message) { messages_.push_back(std::move(message)); }
  bool empty() const { return messages_.empty(); }
  // The oldest message. REQUIRES: it is not empty.
  ControlMessage Take();
  // Removes all orders: they come again in the new view.
  void OnNewView();
  // Removes those that are the oldest messages; they have not begun.
  void DropFirstOrders();
  // Removes the orders that are recalled and were never taken; returns the answer.
  RecalledMessage OnRecall(const RecallMessage& recall);

 private:
  std::deque<ControlMessage> messages_;
  uint64_t last_taken_ = 0;  // The number of the last order that was taken.
};

}  // namespace dt
