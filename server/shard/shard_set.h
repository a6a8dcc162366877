// The shards of one executor in a view of the job: which requests are accepted, and what they do to
// each shard. Owned by the executor's thread; no I/O.
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
  ProcessId self;  // This server.
  uint32_t executor = 0, executors = 1;
  std::optional<Step> staleness = {};         // Set if workers are asynchronous.
  FramePool* frames = &FramePool::Private();  // Makes the answers of pulls; outlives the set.
  Step steps_before = 0;                      // See StartMessage.
};

class ShardSet {
 public:
  explicit ShardSet(ShardSetOptions options);

  const View& view() const { return options_.view; }
  ProcessId self() const { return options_.self; }  // This server.
  Generation generation() const { return options_.view.generation; }

  // OK if a request may be handled. Stale: its sender has an old view. Busy: its sender means the
  // server that had this address before, or knows a newer state than this one, which will follow.
  Status CheckStamp(const Stamp& stamp) const;
  // Returns those of `shards` (ascending) for which a request is refused, because their chains have
  // changed since the sender's map. Malformed: by the sender's own map the shard is not here.
  Result<std::vector<ShardId>> Refused(const Stamp& stamp, std::span<const ShardId> shards) const;
  // Malformed: a shard has its head on another server, to which pushes go.
  Status CheckHeads(std::span<const ShardId> shards, std::span<const ShardId> refused) const;
  // Malformed: a key does not belong to its group's shard, or the number of slices is another one.
  Status CheckKeys(std::span<const KeyGroup> groups, std::span<const Key> keys) const;
  Status CheckSlices(uint32_t slices) const;

  // Gives every record that the shards make from now on to `sink`; null: to nobody. It must outlive
  // its use here.
  void RecordTo(RecordSink* sink) { context_.sink = sink; }
  // See Shard::Follow. DataLoss also if the shard is not here.
  Status Follow(ShardId shard, Record record);

  // Takes the push for each shard that is not `refused`. OK: all of it is taken, now or before.
  // Otherwise a part may be taken, and the same push must come again. REQUIRES: CheckKeys and
  // CheckSlices were OK.
  Status Push(PushRequest request, std::span<const ShardId> refused = {});
  // The workers are those of a newer view: requests of older ones are refused from now on.
  void SetView(ViewNumber number, std::vector<ProcessId> workers);
  // Shards whose heads are here and whose workers are not those of the view get them. To be called
  // after a log has been followed.
  void SettleWorkers();
  // As many steps are known here to be complete.
  Step KnownComplete() const;

  // Called when every step before `step` is complete on all workers: applies what is held, on the
  // shards whose heads are here.
  void Advance(Step step);
  // Every step before this one is known to be complete.
  Step complete() const { return complete_; }
  // Continues what Advance had to leave; call it when progress() has changed.
  void Resume() { Advance(complete_); }
  // True if every shard has applied every step before `step`; with asynchronous workers, if
  // nothing waits to be applied.
  bool Reached(Step step) const { return asynchronous() ? Settled() : clock() >= step; }
  bool asynchronous() const { return options_.staleness.has_value(); }
  Step steps_before() const { return options_.steps_before; }
  // Malformed if the step is so far ahead of the clock that no worker can be there.
  Status CheckStep(Step step) const;
  // The answer for all shards together. If it is kNotYet, so it is for later steps.
  ShardClock::Pullable MayPull(PullMode mode, Step step) const;
  // Attaches the tier below memory; null if there is none. It must outlive its use here.
  void Attach(Residency* residency) { context_.residency = residency; }
  // True if all these rows are in memory. If not, begins to read them: call again when
  // disk_progress() has changed. REQUIRES: the shards are here.
  bool EnsureInMemory(std::span<const KeyGroup> groups, std::span<const Key> keys);
  bool below() const { return residency() != nullptr && residency()->has_rows(); }
  // Changes whenever a request that had to wait may be answered.
  uint64_t progress() const { return changes_ + disk_progress(); }
  uint64_t disk_progress() const { return residency() != nullptr ? residency()->progress() : 0; }
  // True if nothing is held that Advance could still apply.
  bool Settled() const;
  // The values of the groups' rows in wire format; counts the rows as touched. REQUIRES: the shards
  // are here.
  Frame Gather(PullMode mode, std::span<const KeyGroup> groups, std::span<const Key> keys);

  // Adds a saved row. Ignores rows of shards and tables that are not here, and expired rows.
  // DataLoss: the row cannot be one of this job.
  Status Restore(TableId table, Key key, std::span<const std::byte> record, bool on_disk = false);

  // Restores the output of EmbeddingTable::LifeState; ignores that of a shard that is not here.
  // Returns false if the counts were reset because the sketch has another size. DataLoss: the state
  // cannot be one of this job.
  Result<bool> RestoreLife(ShardId shard, TableId table, std::string_view state);
  // Adds the time for which the shards have run since the last call, for expiry by time. So that
  // this does not make many records, it is told to the shards every now and then.
  void PassTime(Duration elapsed);

  // The least clock of the shards; the largest possible step if there are no shards.
  Step clock() const;
  // What the slowest shard waits for: "shard 5 waits for slice 1 of step 7".
  std::string SlowestText() const;
  // Names the end of the log that was read back: "<file>, byte 4711,".
  void SetLogEnd(std::string log_end) { log_end_ = std::move(log_end); }
  // A request for `step` shows that every earlier push was acknowledged. DataLoss naming the log,
  // if some of these pushes are missing from it: power was lost, or the file was cut.
  Status CheckNothingLost(Step step) const;
  void Reset(Step clock, Generation generation);
  // True if the shard is here, and this server a member of its chain.
  bool IsMember(ShardId shard) const;
  // The shards that are to be copied to this executor.
  std::vector<ShardId> Syncing() const;
  // Sets a newer map. The caller removes and adds shards as the map demands.
  void SetMap(ShardMap map);
  // Adds an empty shard, to be filled by the caller. REQUIRES: it is not here, nor are rows of it.
  Shard& Add(ShardId id);
  // The shard is gone at once; its rows leave memory in several calls of RemoveRows.
  void Remove(ShardId id);
  // Removes rows of such shards for some milliseconds, at most.
  void RemoveRows();
  bool HasRowsToRemove() const { return !removed_.empty(); }
  bool HasRowsToRemove(ShardId id) const;
  Shard* Find(ShardId id);
  const Shard* Find(ShardId id) const { return const_cast<ShardSet*>(this)->Find(id); }

  std::span<Shard> shards() { return shards_; }
  std::span<const Shard> shards() const { return shards_; }
  std::span<const TableSpec> tables() const { return options_.tables; }
  uint32_t shards_of_job() const { return options_.view.map.shards(); }
  std::span<const std::unique_ptr<TableRows>> rows() const { return rows_; }
  EmbeddingTable* FindTable(ShardId shard, TableId table);
  uint64_t held_bytes() const;
  uint64_t bytes() const;  // Bytes of rows and indexes.

 private:
  std::unique_ptr<ShardClock> MakeClock() const;
  ClockState ClockAt(Step step) const;  // Every step before is applied, and nothing held.
  Shard::Place PlaceOf(ShardId shard) const;
  WireTable WireOf(uint32_t table) const {
    return {options_.tables[table].dim, options_.tables[table].wire};
  }
  // Fills parts_ with a contribution for each shard that is not refused.
  void Cut(PushRequest request, std::span<const ShardId> refused);
  // Gives parts_ to their shards.
  Status Take(PushMode mode);
  Residency* residency() const { return context_.residency; }

  ShardSetOptions options_;
  std::vector<std::unique_ptr<TableRows>> rows_;  // One for each table.
  std::vector<Shard> shards_;
  struct Removed {  // A shard that is gone; removing its rows has come to `position` in `table`.
    ShardId id;
    std::vector<EmbeddingTable> tables;
    size_t table = 0;
    uint64_t position = 0;
  };
  std::vector<Removed> removed_;
  // Members only to reuse their memory.
  struct Part {
    Shard* shard = nullptr;
    Contribution contribution;
  };
  std::vector<Part> parts_;  // By shard, during a push; empty otherwise.
  std::vector<EmbeddingTable::KeyRun> key_runs_;
  std::vector<EmbeddingTable::PullRun> pull_runs_;
  ShardContext context_;
  uint64_t changes_ = 0;
  Duration time_step_{};    // How often time is told to the shards; zero: never.
  Duration time_passed_{};  // Not told to the shards yet.
  Step complete_ = 0;       // See complete().
  std::string log_end_;     // See SetLogEnd; empty if no log was read back.
};

// The shards that `map` gives to an executor of a server.
std::vector<ShardId> ShardsOf(const ShardMap& map, ProcessId server, uint32_t executor,
                              size_t executors);

}  // namespace dt::server
