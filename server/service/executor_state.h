// What one executor holds: its shards, the disk tier below their memory, and the log of their
// pushes. Owned by the executor's thread.
#pragma once

#include <functional>
#include <memory>

#include "server/log/push_log.h"
#include "server/shard/shard_set.h"
#include "server/storage/disk_tier.h"

namespace dt::server {

class ExecutorState {
 public:
  // `wake` is called on the disk's threads when the tier has work; it must not block.
  explicit ExecutorState(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Replaces everything by shards without rows, and no log.
  void Begin(ShardSetOptions shards, DiskTierOptions disk);
  // Replaces the tier by an empty one; rows in memory stay.
  void RenewTier();
  void KeepLog(std::unique_ptr<PushLog> log) { log_ = std::move(log); }

  ShardSet* shards() const { return shards_.get(); }  // Null until Begin, as is tier().
  DiskTier* tier() const { return tier_.get(); }
  PushLog* log() const { return log_.get(); }  // Null: no log is kept.
  // The log's first segment; 0: there is no log.
  uint64_t first_segment() const { return log_ == nullptr ? 0 : log_->first_segment(); }

 private:
  const std::function<void()> wake_;
  std::unique_ptr<ShardSet> shards_;
  DiskTierOptions disk_;
  std::unique_ptr<DiskTier> tier_;  // The tier below shards_.
  std::unique_ptr<PushLog> log_;
};

}  // namespace dt::server
