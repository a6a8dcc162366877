// Orders that are out: who still has to carry out which. Orders complete in the order of their
// numbers. A plain state machine.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/control/messages.h"

namespace dt::scheduler {

class OrderBoard {
 public:
  using What = decltype(OrderMessage::what);
  using Outcome = decltype(OrderDoneMessage::result);
  struct Completed {
    OrderMessage order;
    std::map<ProcessId, Outcome> outcomes;
  };

  // The message that goes to each of `to`.
  OrderMessage Issue(What what, const std::vector<ProcessId>& to);
  // Internal: an order that `from` does not have, or the outcome of another kind of order.
  Status OnDone(ProcessId from, OrderDoneMessage done);
  // The oldest order, once all have carried it out.
  std::optional<Completed> TakeCompleted();
  // What is out to one process and not done, oldest first.
  std::vector<OrderMessage> OutTo(ProcessId id) const;
  bool empty() const { return out_.empty(); }

 private:
  struct Out {
    OrderMessage order;
    std::set<ProcessId> missing;
    std::map<ProcessId, Outcome> outcomes;
  };
  uint64_t next_number_ = 1;
  std::deque<Out> out_;
};

}  // namespace dt::scheduler
