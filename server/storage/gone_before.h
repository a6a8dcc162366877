// From which step on rows are not gone, for the threads that merge files on disk: what they find
// gone they need not copy. Expiry is a statement (server/life/row_life.h), so nobody sees whether
// and when a row's bytes go.
#pragma once

#include <atomic>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "common/rows/row_key.h"
#include "server/table/embedding_table.h"

namespace dt::server {

class GoneBefore {
 public:
  // Of tables whose rows expire; none may.
  explicit GoneBefore(std::span<EmbeddingTable* const> tables);
  bool empty() const { return steps_.empty(); }

  // The tables' thread. Not while a checkpoint is being saved: rows may be gone now that were not
  // at its cut.
  void Update();
  // Any thread. False for what is no row.
  bool IsGone(std::string_view key, std::string_view record) const;

 private:
  struct Steps {
    const EmbeddingTable* table;
    std::atomic<Step> before = 0;
  };
  std::map<RowKey, Steps> steps_;  // By shard and table, of key 0.
};

}  // namespace dt::server
