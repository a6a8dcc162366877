#include "server/storage/expiry_filter.h"

#include <algorithm>

#include "common/rows/row_record.h"

namespace dt::server {
namespace {

std::vector<TableId> ThoseThatExpire(std::span<const TableSpec> tables) {
  std::vector<TableId> ids;
  for (const TableSpec& table : tables) {
    const LifeSpec& life = table.life;
    if (life.expiry_steps != 0 || life.expiry_time > Duration::zero()) ids.push_back(table.id);
  }
  return ids;
}

}  // namespace

ExpiryFilter::ExpiryFilter(std::span<const TableSpec> tables, uint32_t shards_of_job)
    : shards_of_job_(shards_of_job),
      tables_(ThoseThatExpire(tables)),
      before_(tables_.size() * shards_of_job) {}

std::optional<size_t> ExpiryFilter::PlaceOf(ShardId shard, TableId table) const {
  const auto found = std::ranges::find(tables_, table);
  if (found == tables_.end() || shard.value() >= shards_of_job_) return std::nullopt;
  return static_cast<size_t>(found - tables_.begin()) * shards_of_job_ + shard.value();
}

void ExpiryFilter::Update(const ShardSet& shards) {
  if (empty()) return;
  for (const Shard& shard : shards.shards()) {
    for (uint32_t t = 0; t < shard.tables(); ++t) {
      const EmbeddingTable& table = shard.table(t);
      const std::optional<size_t> place = PlaceOf(shard.id(), table.spec().id);
      if (!place.has_value()) continue;
      before_[*place].store(table.expiry().expire_before(), std::memory_order_relaxed);
    }
  }
}

bool ExpiryFilter::HasExpired(std::string_view key, std::string_view record) const {
  if (key.size() != RowKey::kBytes) return false;
  const RowKey row(key);
  const std::optional<size_t> place = PlaceOf(row.shard(), row.table());
  if (!place.has_value()) return false;
  const std::optional<Step> last_push = LastPushOf(std::as_bytes(std::span(record)));
  return last_push.has_value() && *last_push < before_[*place].load(std::memory_order_relaxed);
}

}  // namespace dt::server
