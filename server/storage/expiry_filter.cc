#include "server/storage/expiry_filter.h"

#include "common/rows/row_record.h"

namespace dt::server {

ExpiryFilter::ExpiryFilter(std::span<EmbeddingTable* const> tables) {
  for (const EmbeddingTable* table : tables) {
    const LifeSpec& life = table->expiry().spec();
    if (life.expiry_steps != 0 || life.expiry_time > Duration::zero()) {
      steps_[RowKey(table->shard(), table->spec().id, 0)].table = table;
    }
  }
}

void ExpiryFilter::Update() {
  for (auto& [row, steps] : steps_) {
    steps.before.store(steps.table->expiry().expire_before(), std::memory_order_relaxed);
  }
}

bool ExpiryFilter::HasExpired(std::string_view key, std::string_view record) const {
  if (key.size() != RowKey::kBytes) return false;
  const RowKey row(key);
  const auto steps = steps_.find(RowKey(row.shard(), row.table(), 0));
  if (steps == steps_.end()) return false;
  const std::optional<Step> last_push = LastPushOf(std::as_bytes(std::span(record)));
  return last_push.has_value() && *last_push < steps->second.before.load(std::memory_order_relaxed);
}

}  // namespace dt::server
