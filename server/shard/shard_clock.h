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
  // Called after each Update: every step before `now` is applied, so that rows may expire.
  virtual void MoveTime(Step now) = 0;
};

// What a clock is after the records so far.
struct ClockState {
  struct Turn {  // Of an asynchronous worker: the first step of its order, and its next push.
    ProcessId worker;
    Step order = 0, next = 0;
    friend bool operator==(const Turn&, const Turn&) = default;
  };
  Step now = 0;                         // For synchronous workers.
  std::vector<Turn> turns = {};         // Of workers without one, order and next are `now`.
  std::vector<Contribution> held = {};  // Those that are not applied.
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
};

// Asynchronous workers.
struct AsyncOptions {
  Step staleness = kUnboundedStaleness;
  std::vector<ProcessId> workers;
};

// Expects one push per slice and step.
std::unique_ptr<ShardClock> MakeSyncClock(uint32_t slices);
// REQUIRES: there are workers.
std::unique_ptr<ShardClock> MakeAsyncClock(const AsyncOptions& options);

}  // namespace dt::server
