// How rows get into memory: the shards' view of the disk below them. For the executor's thread
// only.
#pragma once

#include <span>

#include "server/table/embedding_table.h"

namespace dt::server {

class Residency {
 public:
  virtual ~Residency() = default;
  // True if every key is in memory or has no row. Otherwise begins to read the missing rows; ask
  // again when progress() has changed.
  virtual bool EnsureInMemory(std::span<const EmbeddingTable::KeyRun> runs) = 0;
  // EnsureInMemory for an update of the rows, which may also have to wait until other rows have
  // left.
  virtual bool EnsureWritable(std::span<const EmbeddingTable::KeyRun> runs) = 0;
  // True if some rows are not in memory.
  virtual bool has_rows() const = 0;
  // Limit for the rows and indexes of all shards.
  virtual uint64_t bytes_max() const = 0;
  // Stores a row of a checkpoint for which memory has no room. `on_disk`: the disk has the same
  // record.
  virtual void PutBelow(EmbeddingTable& table, Key key, std::span<const std::byte> record,
                        bool on_disk) = 0;
  // Changes whenever one of the answers above may change.
  virtual uint64_t progress() const = 0;
};

}  // namespace dt::server
