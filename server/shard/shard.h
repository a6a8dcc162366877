// One shard: its part of every table, and the contributions of the step that is being gathered.
//
//   clock t ──all slices and parts of t held, and t known to be complete──▶ sum, apply, clock t + 1
//
// Always:
//  1. A contribution (step, slice, part) counts once, whoever sends it and how often.
//  2. Gradients of equal keys are summed in slice order; then each row is updated once. So the bits
//     depend neither on the order of arrival nor on the number of shards.
//  3. A push of a step is applied as a whole, or not at all.
//
// A plain state machine: no I/O, no clock, no thread of its own. Owned by its executor's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "server/shard/gradient_sum.h"
#include "server/shard/residency.h"
#include "server/table/embedding_table.h"

namespace dt::server {

// Rows of one table in one shard.
struct GroupView {
  uint32_t table = 0;
  std::span<const Key> keys;
  std::span<const std::byte> gradients;  // In the wire format of the table.
};
// The gradients of one part of one slice for one shard. The spans live as long as `owner`.
struct Contribution {
  Step step = 0;
  SliceIndex slice = 0;
  uint32_t part = 0, parts = 1;
  float rate_scale = 1;
  std::span<const GroupView> groups;
  std::shared_ptr<const void> owner;
  // Asynchronous training: who sends it, and the first step of its order.
  ProcessId worker = {};
  Step first_step = 0;
};
// Of one push, by part; nothing: not there yet.
using Contributions = std::vector<std::optional<Contribution>>;
uint64_t BytesOf(const Contribution& contribution);

// What applying contributions needs beside the shard: one for the shards of a thread, kept between
// uses, so that it allocates nothing in steady state.
struct ShardScratch {
  GradientSum sum;
  std::vector<const GroupView*> groups;  // Of the push at hand, in the order of summing.
  std::vector<EmbeddingTable::PushRun> pushes;
  std::vector<EmbeddingTable::KeyRun> keys;
};

// Workers that run apart.
struct AsyncOptions {
  Step staleness = kUnboundedStaleness;
  std::vector<ProcessId> workers;
};
class AsyncClock;

class Shard {
 public:
  // `rows`: of all shards of the executor, by table; they outlive it.
  // `async`: contributions are applied as they come.
  Shard(ShardId id, std::span<const std::unique_ptr<TableRows>> rows, uint32_t slices,
        const AsyncOptions* async = nullptr);
  Shard(Shard&&) noexcept;
  ~Shard();

  ShardId id() const { return id_; }
  // Every step before it is applied.
  Step clock() const;

  // Holds it, or drops it if it is held or applied already. Busy: an earlier step is not gathered
  // yet. Malformed: it contradicts what is held.
  Status Hold(Contribution contribution);
  // True if Advance(step) would make clock() at least `step`.
  bool CanReach(Step step) const;
  // Every step before `step` is complete on all workers: applies those of them that are held, as
  // far as their rows are in memory.
  void Advance(Step step, ShardScratch& scratch, Residency* residency);
  // Of the step at the clock: "slice 3", "slice 2 part 1 of 4", "nothing".
  std::string Missing() const;

  // Asynchronous training: see AsyncClock.
  Status Take(Contribution contribution, ShardScratch& scratch, Residency* residency);
  bool MayPull(Step step) const;

  // Forgets keys and contributions.
  void Reset(Step clock);

  EmbeddingTable& table(uint32_t index) { return tables_[index]; }
  const EmbeddingTable& table(uint32_t index) const { return tables_[index]; }
  size_t tables() const { return tables_.size(); }
  uint64_t held_bytes() const;   // Of contributions.
  uint64_t index_bytes() const;  // And what the lives of rows are counted with.
  uint64_t bytes() const;        // The same with the rows in memory.

  // For expiry by time: the shard runs for so long since the last call.
  void PassTime(Duration elapsed);

 private:
  struct Slice {
    Contributions parts;
    bool whole() const;
  };
  using Slices = std::vector<Slice>;

  Slices& HeldOf(Step step);
  bool Gathered(Step step) const;
  bool EnsureWritable(ShardScratch& scratch, Residency& residency);
  // One update of each row by the sum of the groups.
  void Apply(const UpdateInfo& info, ShardScratch& scratch);
  // False: the rows are not in memory yet.
  std::function<bool(const Contributions& push)> Applying(ShardScratch& scratch,
                                                          Residency* residency);
  void ExpireRows();  // The clock has moved.

  ShardId id_;
  std::span<const std::unique_ptr<TableRows>> rows_;
  std::vector<EmbeddingTable> tables_;
  uint32_t slices_;
  Step clock_ = 0;
  std::map<Step, Slices> held_;                // At the clock and one later.
  std::map<Step, Slices>::node_type spare_{};  // Of the step applied last: the next one's memory.
  uint64_t held_bytes_ = 0;
  std::unique_ptr<AsyncClock> async_;  // Instead of the last four.
};

}  // namespace dt::server
