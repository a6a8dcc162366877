// The rows of one table that are in one shard: an index into the rows that all shards of the
// executor share. Owned by the executor's thread: no other thread may call a method, and none
// blocks.
#pragma once

#include <span>
#include <vector>

#include <absl/container/flat_hash_set.h>

#include "common/base/status.h"
#include "common/rows/row_key.h"
#include "server/life/life_state.h"
#include "server/table/key_index.h"
#include "server/table/row_sink.h"
#include "server/table/table_rows.h"

namespace dt::server {

class EmbeddingTable {
 public:
  // `rows` outlives it.
  explicit EmbeddingTable(TableRows& rows, ShardId shard = ShardId(0));

  // How absent rows are read.
  enum class Absent { kInitial, kZeros };

  // Keys of one table, and where their values go: keys.size() rows in `format`.
  struct PullRun {
    const EmbeddingTable* table = nullptr;
    std::span<const Key> keys;
    void* out = nullptr;
    FloatFormat format = FloatFormat::kFp32;
    Step now = 0;  // The values are those before this step; matters with `scope: dense` alone.
  };
  // Writes the values of all keys; creates no rows. One call for many runs, however short, overlaps
  // the cache misses of all of them.
  static void Pull(std::span<const PullRun> runs, bool evaluate);

  struct PushRun {
    EmbeddingTable* table = nullptr;
    std::span<const Key> keys;
    const void* gradients = nullptr;    // Summed; keys.size() rows in `format`.
    const RowUpdate* update = nullptr;  // From TableRows::UpdateFor for the step.
    FloatFormat format = FloatFormat::kFp32;
  };
  // Updates each row once; makes absent rows if admission() admits them. REQUIRES: the keys of a
  // table are distinct. A step that is not above that of a row's last push counts as one step after
  // it.
  static void Push(std::span<const PushRun> runs, Step step);

  // Keys of one table, and a key that is not in memory: input and output of WarmAndFindAbsent.
  struct KeyRun {
    EmbeddingTable* table = nullptr;
    std::span<const Key> keys;
  };
  struct AbsentKey {
    EmbeddingTable* table = nullptr;
    Key key = 0;
  };
  // Appends the keys that are not in memory. The other rows count as used, so that they stay
  // longer.
  static void WarmAndFindAbsent(std::span<const KeyRun> runs, std::vector<AbsentKey>& absent);

  // Moves the hand of the clock over `buckets` buckets of the index. Cold rows leave memory; those
  // without a current copy on disk go into `sink` first. Rows changed in `keep_period` stay (0:
  // there are none).
  void Evict(uint64_t buckets, uint32_t keep_period, RowSink& sink);
  // Copies rows changed in `period` into `sink` and marks them as on disk. Takes several calls, of
  // about `buckets` buckets each: begin at 0; each returns where to go on, or KeyIndex::kEnd.
  uint64_t SaveChanged(uint64_t from, uint64_t buckets, uint32_t period, RowSink& sink);

  // Removes all rows, in several calls as for SaveChanged; nothing else may be done meanwhile.
  uint64_t RemoveRows(uint64_t from, uint64_t buckets);

  // Removes expired rows from a small part of the index; about a thousand calls go once around.
  // This changes no result, because expired rows count as absent. Does nothing while a checkpoint
  // is being saved, because the rows may have been alive at its cut.
  void RemoveExpired();

  // Pull and Push for a single run.
  void Pull(std::span<const Key> keys, std::span<float> out, Step now = 0) const;
  void Evaluate(std::span<const Key> keys, std::span<float> out, Step now = 0) const;
  void Push(std::span<const Key> keys, std::span<const float> gradients, const UpdateInfo& info);

  // Traffic between this table and the tier below, counted where it is caused. `below`: rows that
  // are not in memory, as in DiskTier::rows_below. The others are totals: keys pulled, rows read
  // from disk, rows written to it.
  struct TierCounts {
    uint64_t below = 0, touched = 0, fetched = 0, written = 0;
  };
  TierCounts& tier_counts() { return tier_counts_; }
  const TierCounts& tier_counts() const { return tier_counts_; }

  const RowAdmission& admission() const { return admission_; }
  RowExpiry& expiry() { return expiry_; }
  const RowExpiry& expiry() const { return expiry_; }
  // The state of both for checkpoints: see life_state.h.
  std::string LifeState() const { return EncodeLifeState(admission_, expiry_); }
  Result<bool> RestoreLife(std::string_view state) {
    return RestoreLifeState(state, admission_, expiry_);
  }

  // Whether the row with this record has expired.
  bool IsExpired(std::span<const std::byte> record) const;

  // For checkpoints and checksums; expired rows are left out.
  std::vector<KeyRow> SortedRows() const;    // Ordered by key.
  std::vector<KeyRow> UnsortedRows() const;  // In any order.
  // The record of a row: values, state, last push. See TableRows.
  void CopyRecord(const KeyRow& row, std::span<std::byte> out) const {
    rows_->CopyRecord(row.row, out);
  }
  bool Contains(Key key) const { return index_.Find(key) != KeyIndex::kAbsent; }
  // Adds a saved row. Malformed: the record has a wrong size, or the key is there already.
  Status Restore(Key key, std::span<const std::byte> record, bool on_disk = false);
  // As Restore, but a row that is in memory gets this record instead of its own.
  Status Replace(Key key, std::span<const std::byte> record);
  // Notes the keys of all rows that are pushed or made from now on, and with `leaving` those of
  // rows that leave memory; null: no more.
  void NoteChanges(absl::flat_hash_set<Key>* changes, bool leaving = false) {
    changes_ = changes;
    notes_leaving_ = leaving;
  }
  // Visits rows in memory, in several calls as for SaveChanged; one may come twice.
  uint64_t Walk(uint64_t from, uint64_t buckets, std::vector<KeyRow>& rows) const {
    return index_.Walk(from, buckets, rows);
  }
  // The row's number, or KeyIndex::kAbsent.
  uint32_t FindRow(Key key) const { return index_.Find(key); }
  // Makes a row with these values and the optimizer state of a new row, unless the key is there
  // already.
  void SetAbsent(Key key, std::span<const float> values);
  // Forgets all keys; TableRows::Clear removes their rows.
  void Clear(Step clock = 0) {
    index_.Reset(0);
    admission_.Reset();
    expiry_.Reset(clock);
    tier_counts_.below = 0;
  }

  ShardId shard() const { return shard_; }
  RowKey RowKeyOf(Key key) const { return {shard_, spec().id, key}; }
  // The rows of all shards of the executor.
  const TableRows& rows_of_all() const { return *rows_; }
  const TableSpec& spec() const { return rows_->spec(); }
  uint32_t dim() const { return spec().dim; }
  // Includes expired rows that are not removed yet.
  uint64_t rows() const { return index_.size(); }
  uint32_t record_bytes() const { return rows_->record_bytes(); }
  uint64_t index_bytes() const { return index_.bytes(); }
  uint64_t index_buckets() const { return index_.buckets(); }

 private:
  Status CheckRecord(std::span<const std::byte> record) const;

  friend class Pipeline;  // The pipelines are in pipelines.cc.
  friend class PullPipeline;
  friend class PushPipeline;
  friend class AbsencePipeline;
  void SaveRow(const KeyRow& row, RowSink& sink);

  TableRows* rows_;
  ShardId shard_;
  KeyIndex index_;
  RowAdmission admission_;
  RowExpiry expiry_;
  TierCounts tier_counts_;
  absl::flat_hash_set<Key>* changes_ = nullptr;
  bool notes_leaving_ = false;
  uint64_t removed_up_to_ = 0;  // A position of KeyIndex::Walk.
};

}  // namespace dt::server
