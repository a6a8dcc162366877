// Decides when the contributions to a shard are applied, and which pulls it may answer. There are
// two kinds: SyncClock, for staleness 0, and AsyncClock, for asynchronous workers. Both are plain
// state machines: no I/O, no time, no thread. Owned by the executor's thread.
//
// Always: a contribution counts once, whoever sends it and however often; a push is applied as a
// whole.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/wire/data.h"
#include "ops/update/update.h"
#include "server/shard/contribution.h"

namespace dt::server {

// Makes the records of a shard and changes its rows.
class ShardUpdater {
 public:
  virtual ~ShardUpdater() = default;
  // True if the rows that these pushes change are in memory. Otherwise begins to read them; ask
  // again later.
  virtual bool Prepare(std::span<const Contributions> pushes) = 0;
  // Makes a record: from now on the contribution is a part of the shard.
  virtual void RecordContribution(const Contribution& contribution) = 0;
  // Makes a record: the step is complete.
  virtual void RecordComplete(Step step) = 0;
  // Updates each row once, by the sum of its gradients in the order of `pushes`. REQUIRES: Prepare
  // was true, and their record is made.
  virtual void Update(const UpdateInfo& info, std::span<const Contributions> pushes) = 0;
  // Makes a record: the workers of the shard are those of this view.
  virtual void RecordWorkers(ViewNumber view, std::span<const ProcessId> workers) = 0;
  // Called after each Update: every step before `now` is applied, so that rows may expire.
  virtual void MoveTime(Step now) = 0;
};

// What a clock is after the records so far.
struct ClockState {
  using Turn = CopyRequest::Turn;
  using Applied = CopyRequest::Applied;
  Step now = 0;                         // For synchronous workers.
  std::vector<Contribution> held = {};  // Those that are not applied.
  // For asynchronous workers, as in CopyRequest.
  ViewNumber view = {};
  std::vector<Turn> turns = {};  // One for each worker, by id.
  Step settled = 0;
  std::vector<Applied> applied = {};  // Ascending.
};

class ShardClock {
 public:
  enum class Pullable { kYes, kNotYet, kTooLate };

  virtual ~ShardClock() = default;

  // Every step before now() is applied.
  virtual Step now() const = 0;
  // OK: the contribution is held or applied, now or before. Busy: it came too early, or its rows
  // are being read from disk; send it again. Malformed: it contradicts what is held, or cannot be
  // of this job.
  virtual Status Take(Contribution contribution, ShardUpdater& updater) = 0;
  // Called when all workers are past every step before `step`: applies what can be applied.
  virtual void Advance(Step step, ShardUpdater& updater) = 0;
  // True if the contributions held suffice to advance to `step`.
  virtual bool CanReach(Step step) const = 0;
  // If it is kNotYet for a step, so it is for later ones.
  virtual Pullable MayPull(PullMode mode, Step step) const = 0;
  // True if nothing is held that could be applied.
  virtual bool settled() const = 0;
  // What now() waits for: "slice 3 of step 7", "the push of step 17 by worker 3".
  virtual std::string Missing() const = 0;
  // The clock becomes this; contributions that are not in it count as never sent. Malformed: the
  // state cannot be one of this job.
  virtual Status Reset(const ClockState& state) = 0;
  virtual ClockState state() const = 0;
  virtual uint64_t held_bytes() const = 0;  // Bytes of the contributions held.

  // Asynchronous workers only, whose set is a part of the shard. The view that has made it what it
  // is.
  virtual ViewNumber view() const { return {}; }
  // Makes it the set of this view. Gives up what is held of pushes: it will come again.
  virtual void SetWorkers(ViewNumber, std::span<const ProcessId>, ShardUpdater&) {}
  // Another member of the shard's chain has taken a push of this worker.
  virtual void Know(ProcessId) {}
};

// Expects one push per slice and step.
std::unique_ptr<ShardClock> MakeSyncClock(uint32_t slices);
// `start`: its turns are those of the workers. REQUIRES: there are workers, and nothing is held.
std::unique_ptr<ShardClock> MakeAsyncClock(Step staleness, const ClockState& start);

}  // namespace dt::server
