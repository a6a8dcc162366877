// Which shards are in the set, and in which place of their chains.
#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "server/shard/shard_set.h"

namespace dt::server {
namespace {

// For removing rows; a turn takes some milliseconds.
constexpr uint64_t kBucketsAtOnce = 512;
constexpr uint64_t kBucketsPerTurn = 8 << 10;

}  // namespace

Shard::Place ShardSet::PlaceOf(ShardId shard) const {
  const Chain& chain = options_.view.map.chains[shard.value()];
  return {chain.head() == options_.self, chain.tail() == options_.self, !chain.Has(options_.self)};
}

void ShardSet::SetMap(ShardMap map) {
  options_.view.map = std::move(map);
  for (Shard& shard : shards_) shard.SetPlace(PlaceOf(shard.id()));
  SettleWorkers();
  ++changes_;
}

void ShardSet::SetView(ViewNumber number, std::vector<ProcessId> workers) {
  if (number <= options_.view.number) return;
  options_.view.number = number;
  options_.view.workers = std::move(workers);
  SettleWorkers();
  ++changes_;
}

void ShardSet::SettleWorkers() {
  if (!asynchronous()) return;
  for (Shard& shard : shards_) {
    shard.SetWorkers(options_.view.number, options_.view.workers, context_);
  }
}

Step ShardSet::KnownComplete() const {
  Step known = complete_;
  for (const Shard& shard : shards_) {
    if (!shard.place().syncing) known = std::max(known, shard.now());
  }
  return known;
}

bool ShardSet::IsMember(ShardId shard) const {
  const Shard* const here = Find(shard);
  return here != nullptr && !here->place().syncing;
}

std::vector<ShardId> ShardSet::Syncing() const {
  std::vector<ShardId> syncing;
  const ShardMap& map = options_.view.map;
  for (uint32_t s = 0; s < map.shards(); ++s) {
    if (ShardMap::ExecutorOf(ShardId(s), options_.executors) != options_.executor) continue;
    if (map.chains[s].IsSyncing(options_.self)) syncing.emplace_back(s);
  }
  return syncing;
}

Shard& ShardSet::Add(ShardId id) {
  const auto at = std::ranges::lower_bound(shards_, id, {}, &Shard::id);
  DT_CHECK((at == shards_.end() || at->id() != id) && !HasRowsToRemove(id));
  ++changes_;
  Shard& added = *shards_.emplace(at, id, rows_, MakeClock());
  added.SetPlace(PlaceOf(id));
  return added;
}

void ShardSet::Remove(ShardId id) {
  const auto at = std::ranges::lower_bound(shards_, id, {}, &Shard::id);
  DT_CHECK(at != shards_.end() && at->id() == id);
  removed_.push_back({id, std::move(*at).TakeTables()});
  shards_.erase(at);
  ++changes_;
}

void ShardSet::RemoveRows() {
  uint64_t left = kBucketsPerTurn;
  while (left > 0 && !removed_.empty()) {
    Removed& shard = removed_.back();
    if (shard.table == shard.tables.size()) {
      removed_.pop_back();
      continue;
    }
    const uint64_t buckets = std::min(left, kBucketsAtOnce);
    shard.position = shard.tables[shard.table].RemoveRows(shard.position, buckets);
    left -= buckets;
    if (shard.position != KeyIndex::kEnd) continue;
    shard.position = 0;
    ++shard.table;
  }
}

bool ShardSet::HasRowsToRemove(ShardId id) const {
  return std::ranges::find(removed_, id, &Removed::id) != removed_.end();
}

std::vector<ShardId> ShardsOf(const ShardMap& map, ProcessId server, uint32_t executor,
                              size_t executors) {
  std::vector<ShardId> shards;
  for (uint32_t s = 0; s < map.shards(); ++s) {
    const bool ours = map.chains[s].Has(server);
    if (ours && ShardMap::ExecutorOf(ShardId(s), executors) == executor) shards.emplace_back(s);
  }
  return shards;
}

}  // namespace dt::server
