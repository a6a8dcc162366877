// Tells the threads that merge files on disk which rows have expired and need not be copied. An
// expired row counts as absent (server/life/row_expiry.h), so it does not matter whether and when
// its bytes are removed.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/rows/row_key.h"
#include "server/shard/shard_set.h"

namespace dt::server {

class ExpiryFilter {
 public:
  // Covers those of the tables whose rows expire, in every shard of the job; there may be none.
  ExpiryFilter(std::span<const TableSpec> tables, uint32_t shards_of_job);
  bool empty() const { return tables_.empty(); }

  // For the tables' thread. Must not be called while a checkpoint is being saved: rows that have
  // expired by now may not have expired at its cut.
  void Update(const ShardSet& shards);
  // Any thread. False if the key is not that of a row.
  bool HasExpired(std::string_view key, std::string_view record) const;

 private:
  // The place of a shard's part of a table in before_; nothing if its rows do not expire.
  std::optional<size_t> PlaceOf(ShardId shard, TableId table) const;

  const uint32_t shards_of_job_;
  std::vector<TableId> tables_;  // Those whose rows expire.
  // By table and shard: rows last pushed before this step have expired.
  std::vector<std::atomic<Step>> before_;
};

}  // namespace dt::server
