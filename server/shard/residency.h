// How rows get into memory: the shards' view of the disk below them. The executor's thread alone
// calls it.
#pragma once

#include <span>

#include "server/table/embedding_table.h"

namespace dt::server {

class Residency {
 public:
  virtual ~Residency() = default;
  // True if every one of the keys is in memory, or has no row. Else begins to read what is missing;
  // ask again when progress() has changed.
  virtual bool EnsureInMemory(std::span<const EmbeddingTable::KeyRun> runs) = 0;
  // The same for an update of the rows, which may also have to wait until others have left.
  virtual bool EnsureWritable(std::span<const EmbeddingTable::KeyRun> runs) = 0;
  // Some rows are not in memory.
  virtual bool has_rows() const = 0;
  // What rows and indexes of all shards may take.
  virtual uint64_t bytes_max() const = 0;
  // A row of a checkpoint for which memory has no room. `on_disk`: it is there as it is here.
  virtual void PutBelow(EmbeddingTable& table, Key key, std::span<const std::byte> record,
                        bool on_disk) = 0;
  // Changes whenever an answer may.
  virtual uint64_t progress() const = 0;
};

}  // namespace dt::server
