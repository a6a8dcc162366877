// The rows of one table that fall into one shard: an index into the rows that all shards of the
// executor share. Owned by the executor's thread: no method may be called from another, none waits.
#pragma once

#include <span>
#include <vector>

#include "common/base/status.h"
#include "server/life/life_state.h"
#include "server/table/key_index.h"
#include "server/table/row_sink.h"
#include "server/table/table_rows.h"

namespace dt::server {

class EmbeddingTable {
 public:
  // `rows` outlives it.
  explicit EmbeddingTable(TableRows& rows, ShardId shard = ShardId(0));

  // What rows that are not there read as.
  enum class Absent { kInitial, kZeros };

  // Keys of one table, and where their values go: keys.size() rows in a format.
  struct PullRun {
    const EmbeddingTable* table = nullptr;
    std::span<const Key> keys;
    void* out = nullptr;
    FloatFormat format = FloatFormat::kFp32;
  };
  // Writes the values of all keys. Creates nothing. One call for many runs, however short, hides
  // the cache misses of all behind one another.
  static void Pull(std::span<const PullRun> runs, bool evaluate);

  struct PushRun {
    EmbeddingTable* table = nullptr;
    std::span<const Key> keys;
    const void* gradients = nullptr;    // Summed; keys.size() rows in a format.
    const RowUpdate* update = nullptr;  // TableRows::UpdateFor of the step.
    FloatFormat format = FloatFormat::kFp32;
  };
  // One update of each row; makes the rows that are not there, where admission() admits them.
  // REQUIRES: the keys of a table are distinct. A step that is not above that of an earlier push
  // counts as one after it.
  static void Push(std::span<const PushRun> runs, Step step);

  // Keys of one table, and those of them that are not in memory.
  struct KeyRun {
    EmbeddingTable* table = nullptr;
    std::span<const Key> keys;
  };
  struct AbsentKey {
    EmbeddingTable* table = nullptr;
    Key key = 0;
  };
  // Appends the keys that are not in memory; the rows of the others count as used, so that they
  // stay longer.
  static void WarmAndFindAbsent(std::span<const KeyRun> runs, std::vector<AbsentKey>& absent);

  // The hand of the clock goes over `buckets` buckets of the index. Cold rows leave; those that the
  // disk has not go into `sink`. Rows changed in `keep_epoch` stay (0: none does).
  void Evict(uint64_t buckets, uint32_t keep_epoch, RowSink& sink);
  // Rows changed in `epoch` go into `sink` and are as on disk from then on. In calls of some
  // `buckets` each: begins at 0, returns where to go on, KeyIndex::kEnd behind the last.
  uint64_t SaveChanged(uint64_t from, uint64_t buckets, uint32_t epoch, RowSink& sink);

  // Frees the places of rows that are gone, of some of the index: a share that comes around in a
  // thousand calls. Nobody can tell the difference. While a checkpoint is being saved it waits: the
  // cut may lie before they went.
  void RemoveGone();

  // The same for one run.
  void Pull(std::span<const Key> keys, std::span<float> out) const;
  void Evaluate(std::span<const Key> keys, std::span<float> out) const;
  void Push(std::span<const Key> keys, std::span<const float> gradients, const UpdateInfo& info);

  // What happened between it and the tier below, counted by who did it. `below`: rows that are not
  // in memory, as DiskTier::rows_below; the others count from the beginning: keys pulled, rows read
  // from disk, rows written to it.
  struct TierCounts {
    uint64_t below = 0, touched = 0, fetched = 0, written = 0;
  };
  TierCounts& tier_counts() { return tier_counts_; }
  const TierCounts& tier_counts() const { return tier_counts_; }

  const RowAdmission& admission() const { return admission_; }
  RowExpiry& expiry() { return expiry_; }
  const RowExpiry& expiry() const { return expiry_; }
  // What checkpoints keep of both: see life_state.h.
  std::string LifeState() const { return EncodeLifeState(admission_, expiry_); }
  Result<bool> RestoreLife(std::string_view state) {
    return RestoreLifeState(state, admission_, expiry_);
  }

  // Of the record of a row, wherever it was kept.
  bool IsGone(std::span<const std::byte> record) const;

  // For checkpoints and checksums: rows that are gone are not among them.
  std::vector<KeyRow> SortedRows() const;    // By key.
  std::vector<KeyRow> UnsortedRows() const;  // In no useful order.
  // The record of a row: values, state, last push. See TableRows.
  void CopyRecord(const KeyRow& row, std::span<std::byte> out) const {
    rows_->CopyRecord(row.row, out);
  }
  bool Contains(Key key) const { return index_.Find(key) != KeyIndex::kAbsent; }
  // Adds a row as it was. Malformed: another size, or a key that is there.
  Status Restore(Key key, std::span<const std::byte> record, bool on_disk = false);
  // Makes a row with these values, and optimizer state as before its first push, unless it is
  // there.
  void SetAbsent(Key key, std::span<const float> values);
  // Forgets all keys; their rows go with TableRows::Clear.
  void Clear(Step clock = 0) {
    index_.Reset(0);
    admission_.Reset();
    expiry_.Reset(clock);
    tier_counts_.below = 0;
  }

  ShardId shard() const { return shard_; }
  const TableRows& rows_of_all() const { return *rows_; }  // Of all shards of the executor.
  const TableSpec& spec() const { return rows_->spec(); }
  uint32_t dim() const { return spec().dim; }
  uint64_t rows() const { return index_.size(); }  // With those that are gone and not removed.
  uint32_t record_bytes() const { return rows_->record_bytes(); }
  uint64_t index_bytes() const { return index_.bytes(); }
  uint64_t index_buckets() const { return index_.buckets(); }

 private:
  friend class Pipeline;  // This and the next: in pipelines.cc.
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
  uint64_t removed_up_to_ = 0;  // A place of KeyIndex::Walk.
};

}  // namespace dt::server
