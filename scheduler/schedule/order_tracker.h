// The orders that are out, and which processes have not carried them out yet. Orders complete in
// the order of their numbers. A plain state machine.
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

// The state of the tracker; a part of the job's record.
struct OrdersOut {
  struct Out {
    OrderMessage order;
    std::set<ProcessId> missing;                // Processes that have not reported the order done.
    std::map<ProcessId, OrderResult> outcomes;  // Reports of the other processes.
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

    // REQUIRES: T is the result type of this kind of order.
    template <class T>
    std::map<ProcessId, T> TakeOutcomes() {
      std::map<ProcessId, T> taken;
      for (auto& [id, outcome] : outcomes) taken.emplace(id, std::get<T>(std::move(outcome)));
      return taken;
    }
  };

  // REQUIRES: `record` outlives the tracker.
  explicit OrderTracker(OrdersOut& record) : record_(record) {}

  // Registers an order and returns the message to send to each of `to`.
  OrderMessage Issue(Order what, const std::vector<ProcessId>& to);
  // A report that has come before, or is no longer needed, changes nothing. Errors: Internal, if
  // the order was never given, or the result is of another kind.
  Status OnDone(ProcessId from, OrderDoneMessage done);
  // Returns the oldest order once all processes have carried it out.
  std::optional<Completed> TakeCompleted();
  // Nothing is expected of this process any more. What it has reported stays.
  void Remove(ProcessId id);
  // The orders that one process has not carried out, oldest first.
  std::vector<OrderMessage> OutTo(ProcessId id) const;
  bool empty() const { return record_.out.empty(); }

 private:
  OrdersOut& record_;
};

}  // namespace dt::scheduler
