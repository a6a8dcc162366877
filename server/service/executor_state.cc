#include "server/service/executor_state.h"

namespace dt::server {

void ExecutorState::Begin(TimePoint now, ShardSetOptions shards, DiskTierOptions disk) {
  log_.reset();
  tier_.reset();
  links_ = ChainLinks(shards.frames);
  shards_ = std::make_unique<ShardSet>(std::move(shards));
  disk_ = std::move(disk);
  disk_.wake = wake_;
  RenewTier();
  Rewire(now);
  if (next_map_.has_value()) SetMap(now, *std::exchange(next_map_, std::nullopt));
}

void ExecutorState::SetMap(TimePoint now, ShardMap map) {
  if (shards_ == nullptr) {
    next_map_ = std::move(map);
    return;
  }
  if (map.version <= shards_->view().map.version) return;
  shards_->SetMap(std::move(map));
  Rewire(now);
}

// The shards make records for those that need them.
void ExecutorState::Rewire(TimePoint now) {
  links_.SetMap(now, *shards_);
  shards_->RecordTo(log_ != nullptr || links_.active() ? this : nullptr);
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
  if (log_ != nullptr) log_->Append(Encode(shard, record));
  links_.OnRecord(shard, record);
}

void ExecutorState::RenewTier() {
  tier_.reset();  // Only one tier may use the shards at a time.
  tier_ = std::make_unique<DiskTier>(disk_, *shards_);
  shards_->Attach(tier_.get());
}

}  // namespace dt::server
