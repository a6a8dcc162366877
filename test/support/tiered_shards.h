// Shards with a disk tier, and the work that an executor's loop does for them.
#pragma once

#include <functional>
#include <semaphore>

#include "common/base/check.h"
#include "server/checkpoint/rows_file.h"
#include "test/support/push_maker.h"
#include "test/support/shard_sets.h"

namespace dt::test {

class TieredShards {
 public:
  TieredShards(std::vector<TableSpec> tables, uint32_t shards_of_job,
               const std::vector<ShardId>& shards, std::string folder, uint64_t memory_bytes)
      : TieredShards(SetOf(std::move(tables), 1, shards_of_job, shards), std::move(folder),
                     memory_bytes) {}
  TieredShards(server::ShardSetOptions shards, std::string folder, uint64_t memory_bytes)
      : shards_(std::move(shards)),
        options_{std::move(folder), memory_bytes, [this] { woken_.release(); }} {
    Attach();
  }
  // Replaces the disk tier by a new one, which knows no rows.
  void Attach() {
    tier_.reset();
    tier_ = std::make_unique<server::DiskTier>(options_, shards_);
    shards_.Attach(tier_.get());
  }

  server::ShardSet& shards() { return shards_; }
  server::DiskTier& tier() { return *tier_; }

  // Runs the loop until `done`; returns false after half a minute, or if the tier fails.
  bool Until(const std::function<bool()>& done) {
    const TimePoint deadline = SystemClock().Now() + seconds(30);
    while (!done()) {
      tier_->Work();
      shards_.RemoveRows();
      if (!tier_->failure().ok() || SystemClock().Now() > deadline) return false;
      if (!tier_->busy()) static_cast<void>(woken_.try_acquire_for(milliseconds(1)));
    }
    return true;
  }

  // Runs the loop without requests for a number of turns of a millisecond each.
  void Rest(int turns) {
    for (; turns > 0; --turns) {
      tier_->Work();
      static_cast<void>(woken_.try_acquire_for(milliseconds(1)));
    }
  }
  // As ExecutorState's.
  void Remove(ShardId shard) {
    tier_->Remove(*shards_.Find(shard));
    shards_.Remove(shard);
  }
  bool HasLeft(ShardId shard) const {
    return !shards_.HasRowsToRemove(shard) && !tier_->removing(shard);
  }
  // Pushes a whole step of rows of one table, as far as their shards are here.
  bool Push(uint32_t table, Step step, const std::map<Key, std::vector<float>>& rows) {
    RowMap map;
    for (const auto& [key, gradient] : rows) map[{table, key}] = gradient;
    std::vector<ShardId> ids;
    for (const server::Shard& shard : shards_.shards()) ids.push_back(shard.id());
    const Grouping grouping({shards_.tables().begin(), shards_.tables().end()},
                            shards_.shards_of_job(), ids, map);
    const Status pushed = shards_.Push(grouping.Push(0, kFirstStamp, step));
    DT_CHECK_MSG(pushed.ok(), "{}", ToText(pushed));
    return Until([&] {
      shards_.Advance(step + 1);
      return shards_.Reached(step + 1);
    });
  }

  // The values of a key from memory or disk; empty if it takes too long.
  std::vector<float> Pull(uint32_t table, Key key) {
    const TableSpec& spec = shards_.tables()[table];
    const ShardId shard = ShardOf(spec.id, key, shards_.shards_of_job());
    const KeyGroup group{shard, table, 1};
    const std::span<const Key> keys(&key, 1);
    if (!Until([&] { return shards_.EnsureInMemory({&group, 1}, keys); })) return {};
    const Frame frame = shards_.Gather(PullMode::kTrain, {&group, 1}, keys);
    const auto values = frame.as<float>();
    return {values.begin(), values.end()};
  }

  // Writes a checkpoint of the current state; `meanwhile` runs while it is being written.
  Result<std::vector<CheckpointFile>> Save(
      Step step, const server::CheckpointLocation& location,
      const std::function<void()>& meanwhile = [] {}) {
    tier_->BeginSave(server::SaveTask(shards_, step, location));
    meanwhile();
    std::unique_ptr<server::CheckpointTask> task;
    const bool done = Until([&] { return (task = tier_->TakeSaved()) != nullptr; });
    if (!done) return Timeout("save: {}", ToText(tier_->failure()));
    if (!task->status.ok()) return task->status;
    return std::move(task->files);
  }
  Status Load(const std::string& folder, Step step) {
    Attach();
    return server::LoadRows({folder, step, Generation(1)}, shards_, tier_.get());
  }

 private:
  server::ShardSet shards_;
  std::counting_semaphore<> woken_{0};
  server::DiskTierOptions options_;
  std::unique_ptr<server::DiskTier> tier_;
};

}  // namespace dt::test
