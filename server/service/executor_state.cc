#include "server/service/executor_state.h"

#include <algorithm>

#include "server/log/logged_part.h"

namespace dt::server {

void ExecutorState::Begin(TimePoint now, ShardSetOptions shards, DiskTierOptions disk) {
  copies_.Reset();
  log_.reset();
  tier_.reset();
  links_ = ChainLinks(shards.frames, lease_);
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
  // What is here of a shard that has left counts no more, even if it is to come back.
  for (const Shard& shard : shards_->shards()) {
    const bool stays = map.chains[shard.id().value()].Has(shards_->self());
    if (shards_->IsMember(shard.id()) && !stays) copies_.Drop(shard.id());
  }
  shards_->SetMap(std::move(map));
  settled_ = false;
  Rewire(now);
  shards_->Resume();  // It may be the head now of shards of which a step is complete.
}

void ExecutorState::FollowMap(TimePoint now) {
  std::set<ShardId> leave = copies_.TakeDropped();
  if (settled_ && leave.empty()) return;
  settled_ = true;
  const ShardMap& map = shards_->view().map;
  for (const Shard& shard : shards_->shards()) {
    const Chain& chain = map.chains[shard.id().value()];
    if (!chain.Has(shards_->self()) && !chain.IsSyncing(shards_->self())) {
      leave.insert(shard.id());
    }
  }
  bool changed = false;
  // What a checkpoint needs stays until it is written.
  for (const ShardId id : leave) {
    if (shards_->Find(id) == nullptr) continue;
    if (tier_->saving()) {
      settled_ = false;
      copies_.Drop(id);
      continue;
    }
    Remove(id);
    changed = true;
  }
  for (const ShardId id : shards_->Syncing()) {
    if (shards_->Find(id) != nullptr) continue;
    if (!HasLeft(id)) {
      settled_ = false;
      continue;
    }
    shards_->Add(id);
    changed = true;
  }
  if (changed) Rewire(now);
}

// The shards make records for those that need them.
void ExecutorState::Rewire(TimePoint now) {
  links_.SetMap(now, *shards_);
  syncing_ = std::ranges::any_of(shards_->view().map.chains,
                                 [](const Chain& chain) { return !chain.syncing.empty(); });
  // A link may begin at any time, when a copy has caught up.
  shards_->RecordTo(this);
}

void ExecutorState::KeepLog(std::unique_ptr<RecordLog> log) {
  log_ = std::move(log);
  shards_->RecordTo(this);
  shards_->SettleWorkers();
}

bool ExecutorState::AddAgain(TimePoint now, ShardId shard) {
  if (!HasLeft(shard)) return false;
  shards_->Add(shard);
  Rewire(now);
  return true;
}

uint64_t ExecutorState::SegmentOfCopies() const {
  uint64_t first = ~uint64_t{0};
  for (const auto& [shard, segment] : copied_in_) first = std::min(first, segment);
  return first;
}

void ExecutorState::Remove(ShardId shard) {
  copied_in_.erase(shard);
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

void ExecutorState::OnPart(const CopyRequest& part) {
  if (log_ == nullptr) return;
  if (part.number == 0) copied_in_[part.shard] = log_->segment();
  log_->Append(EncodePart(part));
  if (part.end) copied_in_.erase(part.shard);
}

void ExecutorState::RenewTier() {
  copies_.Reset();
  copied_in_.clear();
  tier_.reset();  // Only one tier may use the shards at a time.
  // What was being copied to here is dropped; FollowMap adds the shards again, without rows.
  for (const ShardId id : shards_->Syncing()) {
    if (shards_->Find(id) != nullptr) shards_->Remove(id);
  }
  settled_ = false;
  tier_ = std::make_unique<DiskTier>(disk_, *shards_);
  shards_->Attach(tier_.get());
}

void ExecutorState::AddTo(ChainReport& report) const {
  report.kept_bytes += links_.kept_bytes();
  if (shards_ != nullptr) copies_.AddTo(report, *shards_);
}

}  // namespace dt::server
