// What one executor holds: its shards, the disk below their memory, and the log of what they were
// pushed. Owned by the executor's thread.
#pragma once

#include <functional>
#include <memory>

#include "server/log/push_log.h"
#include "server/shard/shard_set.h"
#include "server/storage/disk_tier.h"

namespace dt::server {

class ExecutorState {
 public:
  // `wake` is called on threads of the disk when the tier has work; it must not block.
  explicit ExecutorState(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Shards without rows, and no log, instead of what there was.
  void Begin(ShardSetOptions shards, DiskTierOptions disk);
  // An empty disk below the shards, whose own rows stay.
  void RenewTier();
  void KeepLog(std::unique_ptr<PushLog> log) { log_ = std::move(log); }

  ShardSet* shards() const { return shards_.get(); }  // Null until Begin, as the tier is.
  DiskTier* tier() const { return tier_.get(); }
  PushLog* log() const { return log_.get(); }  // Null: none is kept.
  // Of the log; 0: there is none.
  uint64_t first_segment() const { return log_ == nullptr ? 0 : log_->first_segment(); }

 private:
  const std::function<void()> wake_;
  std::unique_ptr<ShardSet> shards_;
  DiskTierOptions disk_;
  std::unique_ptr<DiskTier> tier_;  // Of shards_.
  std::unique_ptr<PushLog> log_;
};

}  // namespace dt::server
