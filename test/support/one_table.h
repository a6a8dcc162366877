// An embedding table with its own memory for rows.
#pragma once

#include <vector>

#include "server/table/embedding_table.h"

namespace dt::test {

struct OwnRows {
  server::TableRows own_rows;
};

class OneTable : private OwnRows, public server::EmbeddingTable {
 public:
  explicit OneTable(const server::TableSpec& spec)
      : OwnRows{server::TableRows(spec)}, EmbeddingTable(own_rows) {}
  OneTable(const OneTable&) = delete;
  OneTable& operator=(const OneTable&) = delete;

  std::vector<std::byte> Record(const server::KeyRow& row) const {
    std::vector<std::byte> record(record_bytes());
    CopyRecord(row, record);
    return record;
  }
  void Clear() {
    EmbeddingTable::Clear();
    own_rows.Clear();
  }
};

}  // namespace dt::test
