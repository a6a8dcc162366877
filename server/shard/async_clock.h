// The pushes to one shard of workers that run apart (train.staleness above 0): each is applied as
// it comes, a worker's own in the order of its steps.
//
//   next(w) = n            every push of worker w before step n is applied
//   push n, its parts all there ──▶ applied, next(w) = n + 1; then what is parked for n + 1, …
//   push n + 1 … n + kAhead ──▶ parked; its sender is told to come again (Busy)
//   push < n               ──▶ acknowledged and dropped: it is applied
//   push of a later order  ──▶ next(w) = the order's first step: all of the last order is applied
//   pull t                 ──▶ waits until next(w) ≥ t - staleness for every worker
//
// Always: a push is applied once, as a whole, and after all its sender's earlier ones. So the state
// is small and needs no history: a worker may always send again.
//
// A plain state machine: no I/O, no clock, no thread of its own. Owned by its executor's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "server/shard/shard.h"

namespace dt::server {

class AsyncClock {
 public:
  static constexpr Step kAhead = 16;

  // REQUIRES: there are workers.
  AsyncClock(const AsyncOptions& options, Step first);

  // A push that is whole and whose turn it is, part after part.
  // False: nothing was applied, because its rows are not in memory yet.
  using Apply = std::function<bool(const Contributions& push)>;
  // OK: applied now or before, or held until its other parts are there. Busy: parked, too far
  // ahead, or its rows are on their way. Malformed: it contradicts what is held, or comes from
  // nobody in this job.
  Status Take(Contribution part, const Apply& apply);
  // Applies what had to wait for its rows, as far as it can now.
  void Resume(const Apply& apply);

  // Whether a pull for this step may be answered.
  bool MayPull(Step step) const;
  // Every worker has pushed every step before it.
  Step least() const;
  // "worker 3 has not pushed step 17 yet"
  std::string SlowestText() const;
  // What is held counts as never sent; every worker begins at `first`.
  void Reset(Step first);
  uint64_t held_bytes() const { return held_bytes_; }

 private:
  struct Worker {
    Step order = 0, next = 0;
    std::map<Step, Contributions> held;
  };
  Status Place(Worker& worker, Contribution part);
  void ApplyReady(Worker& worker, const Apply& apply);
  void Drop(const Contributions& push);

  const Step staleness_;
  std::map<ProcessId, Worker> workers_;
  uint64_t held_bytes_ = 0;
};

}  // namespace dt::server
