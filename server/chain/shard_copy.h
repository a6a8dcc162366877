// Reads one shard, in parts, while requests to it go on: what its copy on another server is made
// of. A part holds rows as they are when it is made.
//
//   rows on disk ─▶ rows in memory ─▶ again all rows that have changed, or left memory, meanwhile
//                                     └─ few are left: these and the rest of the shard, in one part
//
// A row that changes after it was read is read again. The last part is made in one turn of the
// executor: it and the parts before it are the shard after its record number `position`.
//
// Owned by the executor's thread.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include <absl/container/flat_hash_set.h>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/storage/rocksdb_rows.h"
#include "common/wire/data.h"
#include "server/shard/shard_set.h"
#include "server/storage/disk_tier.h"

namespace dt::server {

class ShardCopy {
 public:
  // Begins to watch the shard. REQUIRES: the shard is in the set; both outlive this object.
  ShardCopy(ShardId shard, ShardSet& shards, DiskTier& tier);
  ~ShardCopy();
  ShardCopy(const ShardCopy&) = delete;
  ShardCopy& operator=(const ShardCopy&) = delete;

  // The next part, with `rows` and, in the last one, all fields that follow `end`. Nothing: rows
  // are on their way to or from the disk; ask again in a later turn. REQUIRES: not ended.
  Result<std::optional<CopyRequest>> NextPart();
  bool ended() const { return stage_ == Stage::kEnded; }
  // Rows change about as fast as parts are made: unless the next part follows at once, the copy
  // does not come to its end.
  bool behind() const { return behind_; }
  // Rows in all parts so far.
  uint64_t rows() const { return rows_; }

 private:
  enum class Stage { kWriting, kDisk, kMemory, kChanges, kEnded };

  Shard& shard() const { return *shards_.Find(id_); }
  Status ReadDisk(std::string& rows);
  void ReadMemory(std::string& rows);
  // False: some of the rows are being read from disk.
  bool ReadChanges(std::string& rows);
  size_t changes_left() const;
  CopyRequest End(std::string rows) const;
  void Append(uint32_t table, const KeyRow& row, std::string& to);

  const ShardId id_;
  ShardSet& shards_;
  DiskTier& tier_;
  Stage stage_ = Stage::kWriting;
  uint64_t written_ = 0;  // DiskTier::BeginReading
  uint64_t rows_ = 0;
  std::unique_ptr<RowsDb::Cursor> disk_;
  uint32_t table_ = 0;
  uint64_t position_ = 0;                                    // In the index of table_.
  uint64_t rounds_ = 0;                                      // Parts of changed rows so far.
  size_t fewest_left_ = std::numeric_limits<size_t>::max();  // Changed rows, after a part.
  bool behind_ = false;
  std::vector<std::unique_ptr<absl::flat_hash_set<Key>>> changes_;  // By table.
};

}  // namespace dt::server
