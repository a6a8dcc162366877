// Which orders are out, and who still has to carry out which. Orders complete in the order of their
// numbers. A plain state machine.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "common/control/messages.h"

namespace dt::scheduler {

// All that the tracker has to remember.
struct OrdersOut {
  struct Out {
    OrderMessage order;
    std::set<ProcessId> missing;                // Have not reported it yet.
    std::map<ProcessId, OrderResult> outcomes;  // What the others have reported.
    DT_FIELDS(order, missing, outcomes)
  };
  uint64_t next_number = 1;
  std::deque<Out> out;  // Oldest first.
  DT_FIELDS(next_number, out)
};

class OrderTracker {
 public:
  struct Completed {
    OrderMessage order;
    std::map<ProcessId, OrderResult> outcomes;

    // REQUIRES: the order is of the kind that gives T.
    template <class T>
    std::map<ProcessId, T> TakeOutcomes() {
      std::map<ProcessId, T> taken;
      for (auto& [id, outcome] : outcomes) taken.emplace(id, std::get<T>(std::move(outcome)));
      return taken;
    }
  };

  // REQUIRES: `record` outlives the tracker.
  explicit OrderTracker(OrdersOut& record) : record_(record) {}

  // The message that goes to each of `to`.
  OrderMessage Issue(Order what, const std::vector<ProcessId>& to);
  // Internal: an order that `from` does not have, or the outcome of another kind of order.
  Status OnDone(ProcessId from, OrderDoneMessage done);
  // The oldest order, once all have carried it out.
  std::optional<Completed> TakeCompleted();
  // The orders that one process has not carried out, oldest first.
  std::vector<OrderMessage> OutTo(ProcessId id) const;
  bool empty() const { return record_.out.empty(); }

 private:
  OrdersOut& record_;
};

}  // namespace dt::scheduler
