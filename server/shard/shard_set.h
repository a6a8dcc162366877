// The shards of one executor in a view of the job: who may be addressed, and what a request means
// for each of them. Owned by the executor's thread; no I/O.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/cluster/view.h"
#include "common/net/frame_pool.h"
#include "common/wire/data.h"
#include "server/shard/shard.h"

namespace dt::server {

struct ShardSetOptions {
  std::vector<TableSpec> tables;
  uint32_t slices = 1;
  View view;
  ProcessId self;  // The server.
  uint32_t executor = 0, executors = 1;
  std::optional<Step> staleness = {};         // Set: workers are asynchronous.
  FramePool* frames = &FramePool::Private();  // Makes the answers of pulls; outlives the set.
};

class ShardSet {
 public:
  explicit ShardSet(ShardSetOptions options);

  const View& view() const { return options_.view; }
  ProcessId self() const { return options_.self; }  // The server.
  Generation generation() const { return options_.view.generation; }

  // OK if a request may be looked at. Stale: its sender's view, or the server it means, is not the
  // present one. Busy: it knows more than this server, which will follow.
  Status CheckStamp(const Stamp& stamp) const;
  // Those of `shards`, ascending, for which a request is refused: their chains have changed since
  // the sender's map. Malformed: by its own map it should be elsewhere.
  Result<std::vector<ShardId>> Refused(const Stamp& stamp, std::span<const ShardId> shards) const;
  // Malformed: a key that is not of its group's shard, another number of slices.
  Status CheckKeys(std::span<const KeyGroup> groups, std::span<const Key> keys) const;
  Status CheckSlices(uint32_t slices) const;

  // Takes what the push brings for each shard that is not `refused`. OK: all of it is taken now or
  // was before. Else some may be taken, and the same push must come again. REQUIRES: CheckKeys and
  // CheckSlices were OK.
  Status Push(PushRequest request, std::span<const ShardId> refused = {});
  // Every step before `step` is complete on all workers: applies what is held.
  void Advance(Step step);
  // Goes on with what Advance had to leave, when progress() has changed.
  void Resume() { Advance(complete_); }
  // True if every shard has applied every step before `step`; with asynchronous workers, if
  // nothing waits to be applied.
  bool Reached(Step step) const { return asynchronous() ? Settled() : clock() >= step; }
  bool asynchronous() const { return options_.staleness.has_value(); }
  // Malformed if the step is so far ahead of the clock that no worker can be there.
  Status CheckStep(Step step) const;
  // For all shards together. If kNotYet, so it is for later steps.
  ShardClock::Pullable MayPull(PullMode mode, Step step) const;
  // Attaches the tier below memory; null if there is none. It must outlive its use here.
  void Attach(Residency* residency) { residency_ = residency; }
  // True if all these rows are in memory. If not, begins to read them: call again when
  // disk_progress() has changed.
  // REQUIRES: the shards are here.
  bool EnsureInMemory(std::span<const KeyGroup> groups, std::span<const Key> keys);
  bool below() const { return residency_ != nullptr && residency_->has_rows(); }
  // Changes whenever a request that had to wait may be answered.
  uint64_t progress() const { return changes_ + disk_progress(); }
  uint64_t disk_progress() const { return residency_ != nullptr ? residency_->progress() : 0; }
  // Nothing is held that Advance could still apply.
  bool Settled() const;
  // The values of the groups' rows, as they travel; counts them as touched. REQUIRES: the shards
  // are here.
  Frame Gather(PullMode mode, std::span<const KeyGroup> groups, std::span<const Key> keys);

  // Adds a row as it was saved. Passes over rows of shards and tables that are not here, and those
  // that are gone. DataLoss: it cannot be one of this job.
  Status Restore(TableId table, Key key, std::span<const std::byte> record, bool on_disk = false);

  // Adds what a shard has to remember beside its rows, as EmbeddingTable::LifeState gave it; that
  // of a shard that is not here is passed over. False: it is of other rules, and the table begins
  // anew to count. DataLoss as above.
  Result<bool> RestoreLife(ShardId shard, TableId table, std::string_view state);
  // The shards run for so long since the last call.
  void PassTime(Duration elapsed);

  // The least clock of its shards; the largest possible step if it has no shards.
  Step clock() const;
  // "shard 5 waits for slice 1 of step 7"
  std::string SlowestText() const;
  // Names the end of the log that was read back: "<file>, byte 4711,".
  void SetLogEnd(std::string log_end) { log_end_ = std::move(log_end); }
  // A request for `step` shows that every earlier push was acknowledged. DataLoss, naming the log,
  // if some of those are missing from it: power was lost, or the file was cut.
  Status CheckNothingLost(Step step) const;
  void Reset(Step clock, Generation generation);
  // A newer map. Shards that it takes away must have been removed, those that it brings are added.
  void SetMap(ShardMap map) { options_.view.map = std::move(map); }
  // An empty shard, to be filled by who brings it. REQUIRES: it is not here.
  Shard& Add(ShardId id);
  void Remove(ShardId id);
  Shard* Find(ShardId id);
  const Shard* Find(ShardId id) const { return const_cast<ShardSet*>(this)->Find(id); }

  std::span<Shard> shards() { return shards_; }
  std::span<const Shard> shards() const { return shards_; }
  std::span<const TableSpec> tables() const { return options_.tables; }
  uint32_t shards_of_job() const { return options_.view.map.shards(); }
  std::span<const std::unique_ptr<TableRows>> rows() const { return rows_; }
  EmbeddingTable* FindTable(ShardId shard, TableId table);
  uint64_t held_bytes() const;
  uint64_t bytes() const;  // Of rows and indexes.

 private:
  std::unique_ptr<ShardClock> MakeClock() const;
  WireTable WireOf(uint32_t table) const {
    return {options_.tables[table].dim, options_.tables[table].wire};
  }
  // Makes a contribution for each shard that is not refused.
  void Cut(PushRequest request, std::span<const ShardId> refused);
  // What Cut has made.
  Status Take();
  bool EnsurePartsAreInMemory();
  void SetAbsent();

  ShardSetOptions options_;
  std::vector<std::unique_ptr<TableRows>> rows_;  // By table.
  std::vector<Shard> shards_;
  // Memory that is kept between messages.
  struct Part {
    Shard* shard = nullptr;
    Contribution contribution;
  };
  std::vector<Part> parts_;  // By shard, during a push; else empty.
  std::vector<EmbeddingTable::KeyRun> key_runs_;
  std::vector<EmbeddingTable::PullRun> pull_runs_;
  ShardScratch scratch_;
  Residency* residency_ = nullptr;
  uint64_t changes_ = 0;
  Step complete_ = 0;    // Every step before this one is complete on all workers.
  std::string log_end_;  // See SetLogEnd; "" if no log was read back.
};

// The shards that `map` gives to an executor of a server.
std::vector<ShardId> ShardsOf(const ShardMap& map, ProcessId server, uint32_t executor,
                              size_t executors);

}  // namespace dt::server
