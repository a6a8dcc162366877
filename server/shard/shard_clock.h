// When the contributions to a shard are applied, and which pulls it may answer. There are two
// kinds: SyncClock, for staleness 0, and AsyncClock, for asynchronous workers. Plain state
// machines: no I/O, no time, no thread of their own. Owned by the executor's thread.
//
// Always: a contribution counts once, whoever sends it and how often; a push is applied as a whole.
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

// Changes the rows of a shard.
class ShardUpdater {
 public:
  virtual ~ShardUpdater() = default;
  // Updates each row once, by the sum of its gradients in the order of `pushes`. False: nothing was
  // changed, because rows are not in memory yet.
  virtual bool Update(const UpdateInfo& info, std::span<const Contributions> pushes) = 0;
  // Every step before `now` is applied: rows may expire. After each Update.
  virtual void MoveTime(Step now) = 0;
};

class ShardClock {
 public:
  enum class Pullable { kYes, kNotYet, kTooLate };

  virtual ~ShardClock() = default;

  // Every step before it is applied.
  virtual Step now() const = 0;
  // OK: it is held or applied, now or before. Busy: it came too early, or its rows are on their way
  // from the disk; send it again. Malformed: it contradicts what is held, or cannot be of this job.
  virtual Status Take(Contribution contribution, ShardUpdater& updater) = 0;
  // All workers are past every step before `step`. Applies what can be applied now.
  virtual void Advance(Step step, ShardUpdater& updater) = 0;
  // What is here suffices to advance to `step`.
  virtual bool CanReach(Step step) const = 0;
  // If a pull can be answered, so it is for earlier steps; else neither are later ones.
  virtual Pullable MayPull(PullMode mode, Step step) const = 0;
  // Nothing is held that could be applied.
  virtual bool settled() const = 0;
  // "slice 3 of step 7"; "a push of step 17 by worker 3"
  virtual std::string Missing() const = 0;
  // Forgets contributions, which then count as never sent; the next step is `step`.
  virtual void Reset(Step step) = 0;
  virtual uint64_t held_bytes() const = 0;  // Of contributions.
};

// Asynchronous workers.
struct AsyncOptions {
  Step staleness = kUnboundedStaleness;
  std::vector<ProcessId> workers;
};

// One push a slice and step.
std::unique_ptr<ShardClock> MakeSyncClock(uint32_t slices);
// REQUIRES: there are workers.
std::unique_ptr<ShardClock> MakeAsyncClock(const AsyncOptions& options);

}  // namespace dt::server
