#include "server/table/embedding_table.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::server {
namespace {

constexpr size_t kRowsAhead = 32;  // Rows that leave or are saved are prefetched this far ahead.

}  // namespace

EmbeddingTable::EmbeddingTable(TableRows& rows, ShardId shard)
    : rows_(&rows),
      shard_(shard),
      index_(MixBits(rows.spec().id.value())),
      admission_(rows.spec().life, rows.spec().id.value()),
      expiry_(rows.spec().life) {}

void EmbeddingTable::SaveRow(const KeyRow& row, RowSink& sink) {
  rows_->CopyRecord(row.row, sink.Add(*this, row.key));
  RowHeader& header = rows_->header(row.row);
  header = {header.last_push(), RowHeader::kOnDisk};
}

void EmbeddingTable::Evict(uint64_t buckets, uint32_t keep_period, RowSink& sink) {
  std::vector<KeyRow> cold;
  index_.Sweep(buckets, cold);
  for (size_t i = 0; i < cold.size(); ++i) {
    if (i + kRowsAhead < cold.size()) {
      const KeyRow& ahead = cold[i + kRowsAhead];
      __builtin_prefetch(&rows_->header(ahead.row), 1);
      __builtin_prefetch(index_.BucketOf(index_.HashOf(ahead.key)), 1);
    }
    const RowHeader& header = rows_->header(cold[i].row);
    if (header.change() == keep_period && keep_period != 0) continue;
    if (header.change() != RowHeader::kOnDisk) SaveRow(cold[i], sink);
    index_.Erase(cold[i].key);
    rows_->Remove(cold[i].row);
    sink.Left(*this, cold[i].key);
    if (changes_ != nullptr && notes_leaving_) changes_->insert(cold[i].key);
  }
}

uint64_t EmbeddingTable::SaveChanged(uint64_t from, uint64_t buckets, uint32_t period,
                                     RowSink& sink) {
  std::vector<KeyRow> rows;
  const uint64_t next = index_.Walk(from, buckets, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kRowsAhead < rows.size()) {
      __builtin_prefetch(&rows_->header(rows[i + kRowsAhead].row), 1);
    }
    if (rows_->header(rows[i].row).change() == period) SaveRow(rows[i], sink);
  }
  return next;
}

uint64_t EmbeddingTable::RemoveRows(uint64_t from, uint64_t buckets) {
  std::vector<KeyRow> rows;
  const uint64_t next = index_.Walk(from, buckets, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kRowsAhead < rows.size()) __builtin_prefetch(rows_->row(rows[i + kRowsAhead].row), 1);
    if (index_.Find(rows[i].key) != rows[i].row) continue;  // The walk returned the key twice.
    index_.Erase(rows[i].key);
    rows_->Remove(rows[i].row);
  }
  return next;
}

void EmbeddingTable::Pull(std::span<const Key> keys, std::span<float> out, Step now) const {
  DT_CHECK(out.size() == keys.size() * dim());
  const PullRun run{.table = this, .keys = keys, .out = out.data(), .now = now};
  Pull({&run, 1}, false);
}

void EmbeddingTable::Evaluate(std::span<const Key> keys, std::span<float> out, Step now) const {
  DT_CHECK(out.size() == keys.size() * dim());
  const PullRun run{.table = this, .keys = keys, .out = out.data(), .now = now};
  Pull({&run, 1}, true);
}

void EmbeddingTable::Push(std::span<const Key> keys, std::span<const float> gradients,
                          const UpdateInfo& info) {
  DT_CHECK(gradients.size() == keys.size() * dim());
  const PushRun run{this, keys, gradients.data(), &rows_->UpdateFor(info)};
  Push({&run, 1}, info.step);
}

std::vector<KeyRow> EmbeddingTable::UnsortedRows() const {
  std::vector<KeyRow> rows;
  index_.AppendTo(rows);
  if (expiry_.expire_before() != 0) {
    std::erase_if(rows, [&](const KeyRow& row) {
      return expiry_.IsExpired(rows_->header(row.row).last_push());
    });
  }
  return rows;
}

std::vector<KeyRow> EmbeddingTable::SortedRows() const {
  std::vector<KeyRow> rows = UnsortedRows();
  std::ranges::sort(rows);
  return rows;
}

// The row starts a little warm; otherwise a row that was just wanted would be the first to leave.
Status EmbeddingTable::CheckRecord(std::span<const std::byte> record) const {
  if (record.size() == record_bytes()) return OkStatus();
  return Malformed("a row of table {} has {} bytes instead of {}", spec().name, record.size(),
                   record_bytes());
}

Status EmbeddingTable::Restore(Key key, std::span<const std::byte> record, bool on_disk) {
  DT_TRY_STATUS(CheckRecord(record));
  if (index_.Find(key) != KeyIndex::kAbsent) {
    return Malformed("row {} of table {} comes twice", key, spec().name);
  }
  index_.Insert(key, rows_->AddRecord(record, on_disk), 2);
  return OkStatus();
}

Status EmbeddingTable::Replace(Key key, std::span<const std::byte> record) {
  DT_TRY_STATUS(CheckRecord(record));
  if (const uint32_t row = index_.Find(key); row != KeyIndex::kAbsent) {
    rows_->SetRecord(row, record);
  } else {
    index_.Insert(key, rows_->AddRecord(record, false), 2);
  }
  return OkStatus();
}

void EmbeddingTable::SetAbsent(Key key, std::span<const float> values) {
  DT_CHECK(values.size() == dim());
  if (index_.Find(key) != KeyIndex::kAbsent) return;
  if (changes_ != nullptr) changes_->insert(key);
  const uint32_t row = rows_->Add(key);
  EncodeRow(spec().dtype, values, rows_->row(row));
  index_.Insert(key, row);
}

}  // namespace dt::server
