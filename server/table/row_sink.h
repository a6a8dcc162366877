// Receives rows that leave memory or are saved. Owned by the executor's thread.
#pragma once

#include <cstddef>
#include <span>

#include "common/base/ids.h"

namespace dt::server {

class EmbeddingTable;

class RowSink {
 public:
  virtual ~RowSink() = default;
  // Returns space for a row's record, which the caller fills before the next call of any kind. It
  // replaces an earlier record of the same row.
  virtual std::span<std::byte> Add(EmbeddingTable& table, Key key) = 0;
  // Called when the row is not in memory any more.
  virtual void Left(EmbeddingTable& table, Key key) = 0;
};

}  // namespace dt::server
