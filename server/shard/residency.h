// Whether rows are in memory, and how they get there: the shards' view of the disk below them.
#pragma once

#include <span>
#include <string>

#include "server/table/embedding_table.h"

namespace dt::server {

class Residency {
 public:
  virtual ~Residency() = default;
  // True if every one of the keys is in memory, or has no row. Else what is missing has been asked
  // for; ask again when progress() has changed.
  virtual bool Resident(std::span<const EmbeddingTable::KeyRun> runs) = 0;
  // As Resident for an update of the rows, which may have to wait until rows have left.
  virtual bool Writable(std::span<const EmbeddingTable::KeyRun> runs) = 0;
  // Some rows are not in memory.
  virtual bool below() const = 0;
  // That rows and indexes of all shards may take.
  virtual uint64_t bytes_max() const = 0;
  // A row of a checkpoint for which memory has no room. `on_disk`: it is there as it is here.
  virtual void PutBelow(EmbeddingTable& table, Key key, std::span<const std::byte> record,
                        bool on_disk) = 0;
  // Changes whenever an answer may.
  virtual uint64_t progress() const = 0;
};

}  // namespace dt::server
