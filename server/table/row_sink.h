// Where rows go that leave memory, or are saved. Owned by the executor's thread.
#pragma once

#include <cstddef>
#include <span>

#include "common/base/ids.h"

namespace dt::server {

class EmbeddingTable;

class RowSink {
 public:
  virtual ~RowSink() = default;
  // Room for the record of a row, which the caller fills before the next call of any kind. An
  // earlier record of the same row is void.
  virtual std::span<std::byte> Add(EmbeddingTable& table, Key key) = 0;
  // The row is not in memory any more.
  virtual void Left(EmbeddingTable& table, Key key) = 0;
};

}  // namespace dt::server
