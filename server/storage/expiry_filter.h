// Tells the threads that merge files on disk which rows have expired: those need not be copied.
// Expiry is a statement (server/life/row_expiry.h), so nobody sees whether and when a row's bytes
// go.
#pragma once

#include <atomic>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "common/rows/row_key.h"
#include "server/table/embedding_table.h"

namespace dt::server {

class ExpiryFilter {
 public:
  // Looks at those of the tables whose rows expire; there may be none.
  explicit ExpiryFilter(std::span<EmbeddingTable* const> tables);
  bool empty() const { return steps_.empty(); }

  // The tables' thread. Not while a checkpoint is being saved: rows may have expired now that had
  // not at its cut.
  void Update();
  // Any thread. False for what is no row.
  bool HasExpired(std::string_view key, std::string_view record) const;

 private:
  struct Steps {
    const EmbeddingTable* table;
    std::atomic<Step> before = 0;  // Rows last pushed before this step have expired.
  };
  std::map<RowKey, Steps> steps_;  // By shard and table, with key 0.
};

}  // namespace dt::server
