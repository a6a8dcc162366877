// Tells the threads that merge files on disk which rows have expired and need not be copied. An
// expired row counts as absent (server/life/row_expiry.h), so it does not matter whether and when
// its bytes are removed.
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
  // Covers those of the tables whose rows expire; there may be none.
  explicit ExpiryFilter(std::span<EmbeddingTable* const> tables);
  bool empty() const { return steps_.empty(); }

  // For the tables' thread. Must not be called while a checkpoint is being saved: rows that have
  // expired by now may not have expired at its cut.
  void Update();
  // Any thread. False if the key is not that of a row.
  bool HasExpired(std::string_view key, std::string_view record) const;

 private:
  struct Steps {
    const EmbeddingTable* table;
    std::atomic<Step> before = 0;  // Rows last pushed before this step have expired.
  };
  std::map<RowKey, Steps> steps_;  // Keyed by shard and table; the row's key is 0.
};

}  // namespace dt::server
