// Rows that have expired (server/life/row_expiry.h).
#include <algorithm>

#include "common/rows/row_record.h"
#include "server/table/embedding_table.h"

namespace dt::server {
namespace {

constexpr uint64_t kCallsPerRound = 1024;
constexpr size_t kExpiredRowsAhead = 32;

}  // namespace

bool EmbeddingTable::IsExpired(std::span<const std::byte> record) const {
  const std::optional<Step> last_push = LastPushOf(record);
  return last_push.has_value() && expiry_.IsExpired(*last_push);
}

void EmbeddingTable::RemoveExpired() {
  if (expiry_.expire_before() == 0 || rows_->first_changes() != nullptr) return;
  std::vector<KeyRow> rows;
  removed_up_to_ = index_.Walk(removed_up_to_, index_.buckets() / kCallsPerRound + 1, rows);
  if (removed_up_to_ == KeyIndex::kEnd) removed_up_to_ = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const KeyRow& ahead = rows[std::min(i + kExpiredRowsAhead, rows.size() - 1)];
    __builtin_prefetch(&rows_->header(ahead.row));
    if (!expiry_.IsExpired(rows_->header(rows[i].row).last_push())) continue;
    if (index_.Find(rows[i].key) != rows[i].row) continue;  // The walk returned the key twice.
    index_.Erase(rows[i].key);
    rows_->Remove(rows[i].row);
    expiry_.CountExpired(1);
  }
}

}  // namespace dt::server
