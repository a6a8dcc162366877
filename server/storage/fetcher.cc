#include "server/storage/fetcher.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::server {
namespace {

constexpr size_t kAhead = 16;  // The filter is prefetched this many keys ahead.

}  // namespace

bool Fetcher::EnsureInMemory(std::span<const EmbeddingTable::KeyRun> runs) {
  if (below_.rows() == 0) return true;
  absent_.clear();
  EmbeddingTable::WarmAndFindAbsent(runs, absent_);
  uint64_t last = 0;
  for (size_t i = 0; i < absent_.size(); ++i) {
    if (i + kAhead < absent_.size()) {
      const EmbeddingTable::AbsentKey& ahead = absent_[i + kAhead];
      below_.PrefetchFilter(ahead.table->RowKeyOf(ahead.key));
    }
    last = std::max(last, Bring(*absent_[i].table, absent_[i].key));
  }
  Send();
  if (last == 0) return true;
  awaited_.insert(last);
  progress_.Await();
  return false;
}

uint64_t Fetcher::Bring(EmbeddingTable& table, Key key) {
  const RowKey row = table.RowKeyOf(key);
  if (const auto wanted = wanted_.find(row); wanted != wanted_.end()) return wanted->second;
  if (!below_.MayHave(row)) return 0;
  // Several slices may name the same key, so that it was returned a moment ago.
  if (table.Contains(key) || BringFromRun(table, key) || below_.IsNowhere(row)) return 0;
  return Want(table, key);
}

// The row counts as on disk, because its run will be there: it need not be written again.
bool Fetcher::BringFromRun(EmbeddingTable& table, Key key) {
  const std::span<const std::byte> record = below_.FindOnItsWay(table.RowKeyOf(key));
  if (record.empty()) return false;
  if (table.IsExpired(record)) return true;  // Handled like an expired row on disk: see Install.
  const Status restored = table.Restore(key, record, true);
  DT_CHECK_MSG(restored.ok(), "{}", ToText(restored));
  below_.NoteBack(table);
  return true;
}

uint64_t Fetcher::Want(const EmbeddingTable& table, Key key) {
  const uint64_t number = sent_ + 1;
  const RowKey row = table.RowKeyOf(key);
  wanted_.emplace(row, number);
  if (gathered_ == nullptr) gathered_ = std::make_unique<RowFetch>();
  gathered_->rows.push_back({row});
  gathered_->bytes_max += table.record_bytes();
  return number;
}

// While the reader has enough to do, more rows are gathered for the next fetch.
void Fetcher::Send() {
  if (gathered_ != nullptr && disk_.TryFetch(gathered_)) ++sent_;
}

Status Fetcher::OnFetched(const RowFetch& fetch) {
  Status status = fetch.status;
  for (const RowFetch::Row& row : fetch.rows) {
    wanted_.erase(row.key);
    status.Update(Install(row));
  }
  if (awaited_.erase(++done_) != 0) progress_.Note();
  Send();
  return status;
}

// The count of rows below is never too low: an expired row may have been removed from memory
// without being counted, and one that was counted stays counted.
Status Fetcher::Install(const RowFetch::Row& row) {
  EmbeddingTable* const table = shards_.FindTable(row.key.shard(), row.key.table());
  if (table == nullptr) return OkStatus();
  if (row.record.empty() || table->IsExpired(row.record)) {
    below_.NoteNowhere(row.key);
    return OkStatus();
  }
  const Status restored = table->Restore(row.key.key(), row.record, true);
  ++table->tier_counts().fetched;
  below_.NoteBack(*table);
  return restored.ok() ? restored : DataLoss("{}", MessageOf(restored));
}

}  // namespace dt::server
