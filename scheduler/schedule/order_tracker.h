// The orders that are out, and which processes have not carried them out yet. Orders complete in
// the order of their numbers. A plain state machine.
//
// Orders to train are given out long before they begin. A recall ends them early: each process
// gives back what it has not begun, and answers where that begins. When all have answered, the
// orders that nobody has begun are cancelled, and the others are sent again to those that gave them
// back. Until then no process is sent an order that is recalled, so that its answer stays true.
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
    std::map<ProcessId, OrderResult> outcomes;  // Reports of processes.
    bool begun = false;                         // A worker that was lost may have begun it.
    DT_FIELDS(order, missing, outcomes, begun)
  };
  struct Recall {
    uint64_t from = 0;                     // The number of the first order that is recalled.
    std::set<ProcessId> missing;           // Processes that have not answered.
    std::map<ProcessId, uint64_t> firsts;  // RecalledMessage::first of the others.
    bool new_workers =
        false;  // They have changed meanwhile: nobody has any of the recalled orders.
    DT_FIELDS(from, missing, firsts, new_workers)
  };
  uint64_t next_number = 1;
  std::deque<Out> out;  // Oldest first.
  std::optional<Recall> recall;
  DT_FIELDS(next_number, out, recall)
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

  struct Recalled {
    std::vector<OrderMessage> cancelled;                    // Oldest first.
    std::vector<std::pair<ProcessId, OrderMessage>> again;  // To be sent again.
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
  // Nothing is expected of this process any more. What it has reported stays. REQUIRES: no order
  // that is recalled was issued to it.
  void Remove(ProcessId id);
  // A worker is lost. Of synchronous workers, what it has reported counts no more: others report
  // the same. Of asynchronous ones it counts, and all else that it was to do is to be done again.
  // Returns what follows, if its answer to a recall was the last one missing.
  std::optional<Recalled> RemoveWorker(ProcessId id, bool asynchronous);
  // From now on the workers are these. Training goes on where it is, in slices of these owners;
  // newcomers take part in orders that are not at their end. Asynchronous workers go on with their
  // own slices, and get those of the lost ones. All other orders are done again by the workers.
  // Returns the orders to be sent, oldest first; those that are recalled follow when the recall
  // ends.
  struct NewWorkers {
    const std::vector<ProcessId>& workers;
    const std::vector<ProcessId>& newcomers;
    Step step = 0;  // Training goes on with it.
    const std::vector<uint32_t>& slice_owner;
    std::set<ProcessId> servers;  // Their reports stay.
    bool asynchronous = false;
  };
  std::vector<std::pair<ProcessId, OrderMessage>> OnNewWorkers(const NewWorkers& now);
  // The orders that one process has not carried out and that are not recalled, oldest first.
  std::vector<OrderMessage> OutTo(ProcessId id) const;

  // Recalls all orders but the `keep` oldest; they are out to the same processes. REQUIRES: more
  // are out, and no recall is.
  void Recall(size_t keep);
  // An answer; once all have come, what follows. One that is late changes nothing. Errors:
  // Internal, if it cannot be.
  Result<std::optional<Recalled>> OnRecalled(ProcessId from, const RecalledMessage& answer);
  // What a process is still to be asked.
  std::optional<RecallMessage> RecallTo(ProcessId id) const;
  bool empty() const { return record_.out.empty(); }
  // Whether nothing but training is out, and no recall.
  bool only_trains() const;

 private:
  Recalled EndRecall();

  OrdersOut& record_;
};

}  // namespace dt::scheduler
