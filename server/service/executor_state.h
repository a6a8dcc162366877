// What one executor holds: its shards, the disk tier below their memory, the log of their records,
// and the links to the other members of their chains. Owned by the executor's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "common/base/clock.h"
#include "common/cluster/shard_map.h"
#include "server/chain/chain_links.h"
#include "server/chain/shard_copies.h"
#include "server/log/record_log.h"
#include "server/shard/shard_set.h"
#include "server/storage/disk_tier.h"

namespace dt::server {

class ExecutorState : private RecordSink {
 public:
  // `wake` is called on the disk's threads when the tier has work; it must not block.
  // `move_rate`: limit for the bytes per second of shards that are copied from here; 0: none.
  // `lease`: see ChainLinks::silent.
  explicit ExecutorState(std::function<void()> wake, uint64_t move_rate = 0,
                         Duration lease = seconds(3))
      : wake_(std::move(wake)),
        lease_(lease),
        copies_(move_rate, [this](const CopyRequest& part) { OnPart(part); }) {}

  // Replaces everything by shards without rows, and no log.
  void Begin(TimePoint now, ShardSetOptions shards, DiskTierOptions disk);
  // Takes up a newer map of the job, at once or, before Begin, with the next one.
  void SetMap(TimePoint now, ShardMap map);
  // Replaces the tier by an empty one. Rows in memory stay, but for shards that are being copied to
  // here: they begin anew.
  void RenewTier();
  // Takes a shard away. It must not be added again before HasLeft. REQUIRES: no checkpoint is being
  // saved.
  void Remove(ShardId shard);
  // True if nothing of a removed shard is left, in memory or on disk.
  bool HasLeft(ShardId shard) const;
  // Adds a removed shard again, without rows. False: those it had are still leaving.
  bool AddAgain(TimePoint now, ShardId shard);
  // From now on the shards' records go into the log, and parts of shards that are copied to here.
  void KeepLog(std::unique_ptr<RecordLog> log);
  // The first segment of the log that has a part of a copy that is not complete; the largest number
  // if there is none.
  uint64_t SegmentOfCopies() const;

  ShardSet* shards() const { return shards_.get(); }  // Null until Begin, as is tier().
  DiskTier* tier() const { return tier_.get(); }
  RecordLog* log() const { return log_.get(); }  // Null if no log is kept.
  // Takes shards in and gives them away as the map says; called in every turn.
  void FollowMap(TimePoint now);
  // The rows were replaced by those of a checkpoint.
  void BeginAnew(TimePoint now) { links_.Reset(now, *shards_); }
  // True if shards are being copied, from here or to here.
  bool copying() const { return syncing_ || !copies_.idle(); }
  ShardCopies& copies() { return copies_; }
  const ShardCopies& copies() const { return copies_; }
  ChainLinks& links() { return links_; }
  const ChainLinks& links() const { return links_; }
  // Adds what is done for other members of the chains.
  void AddTo(ChainReport& report) const;
  // The log's first segment; 0: there is no log.
  uint64_t first_segment() const { return log_ == nullptr ? 0 : log_->first_segment(); }

 private:
  void OnRecord(ShardId shard, const Record& record) override;
  void OnPart(const CopyRequest& part);
  void Rewire(TimePoint now);

  const std::function<void()> wake_;
  const Duration lease_;
  std::unique_ptr<ShardSet> shards_;
  DiskTierOptions disk_;
  std::unique_ptr<DiskTier> tier_;  // The tier below shards_.
  std::unique_ptr<RecordLog> log_;
  std::map<ShardId, uint64_t> copied_in_;  // The log's segments in which copies to here begin.
  ChainLinks links_;
  ShardCopies copies_;                // Declared last: they read the shards and the tier.
  bool settled_ = false;              // The shards are those of the map.
  bool syncing_ = false;              // Some chain of the map has a newcomer.
  std::optional<ShardMap> next_map_;  // A map that came before Begin.
};

}  // namespace dt::server
