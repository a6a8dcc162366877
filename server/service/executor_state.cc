#include "server/service/executor_state.h"

namespace dt::server {

void ExecutorState::Begin(ShardSetOptions shards, DiskTierOptions disk) {
  log_.reset();
  tier_.reset();
  shards_ = std::make_unique<ShardSet>(std::move(shards));
  disk_ = std::move(disk);
  disk_.wake = wake_;
  RenewTier();
}

void ExecutorState::KeepLog(std::unique_ptr<RecordLog> log) {
  log_ = std::move(log);
  shards_->RecordTo(this);
}

void ExecutorState::Remove(ShardId shard) {
  tier_->Remove(*shards_->Find(shard));
  shards_->Remove(shard);
}

bool ExecutorState::HasLeft(ShardId shard) const {
  return !shards_->HasRowsToRemove(shard) && !tier_->removing(shard);
}

void ExecutorState::OnRecord(ShardId shard, const Record& record) {
  log_->Append(Encode(shard, record));
}

void ExecutorState::RenewTier() {
  tier_.reset();  // Only one tier may use the shards at a time.
  tier_ = std::make_unique<DiskTier>(disk_, *shards_);
  shards_->Attach(tier_.get());
}

}  // namespace dt::server
