// How the rows of a slice are cut into messages. A shard's rows are cut by their own bytes alone,
// so that the pieces of a push are the same whoever sends them to whomever; then whole pieces are
// packed, executor by executor.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/wire/data.h"
#include "worker/lookup/lookup_plan.h"

namespace dt::worker {

// Rows that travel in one message.
struct MessageCut {
  uint32_t executor = 0;
  ShardPieces pieces;             // Shards ascending; also those without rows.
  PooledVector<RowGroup> groups;  // As LookupPlan::groups.
  size_t rows = 0;
  size_t bytes = 0;  // Of keys and rows.
};

class MessageCutter {
 public:
  // tables: by table of the graph, how its rows travel. bytes_max: of keys and rows in a message,
  // or in its answer.
  MessageCutter(std::vector<WireTable> tables, size_t bytes_max)
      : tables_(std::move(tables)), bytes_max_(bytes_max) {}

  // executor_of: by shard. Rows of tables that carry nothing are left out. With `every_shard` those
  // without rows have a piece, too.
  PooledVector<MessageCut> Cut(std::span<const RowGroup> groups,
                               std::span<const uint32_t> executor_of,
                               const std::function<bool(uint32_t table)>& carries,
                               bool every_shard);

 private:
  struct Piece {
    size_t first_group = 0, end_group = 0;  // Of groups_.
    size_t rows = 0, bytes = 0;
  };
  void CutShard(std::span<const RowGroup> groups, const std::function<bool(uint32_t)>& carries);
  void Pack(ShardId shard, uint32_t executor, PooledVector<MessageCut>& messages);

  const std::vector<WireTable> tables_;
  const size_t bytes_max_;
  // Memory that is kept between uses.
  std::vector<RowGroup> groups_;   // Of the shard at hand, cut.
  std::vector<Piece> pieces_;      // Likewise.
  std::vector<uint32_t> filling_;  // By executor: its last message, and one more; 0: it has none.
};

}  // namespace dt::worker
