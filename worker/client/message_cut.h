// How the rows of a slice are cut into messages. Each shard's rows are cut by their own sizes
// alone, so that the pieces of a push are the same whoever sends them and wherever they go; then
// whole pieces are packed, executor by executor.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/wire/data.h"
#include "worker/lookup/lookup_plan.h"

namespace dt::worker {

// The rows of one message.
struct MessageCut {
  uint32_t executor = 0;
  ShardPieces pieces;             // Shards ascending; some may have no rows.
  PooledVector<RowGroup> groups;  // In the form of LookupPlan::groups.
  size_t rows = 0;
  size_t bytes = 0;  // Bytes of keys and rows.
};

class MessageCutter {
 public:
  // `tables`: for each table of the graph, the wire format of its rows. `bytes_max`: limit for the
  // keys and rows in a message, or in its answer.
  MessageCutter(std::vector<WireTable> tables, size_t bytes_max)
      : tables_(std::move(tables)), bytes_max_(bytes_max) {}

  // `executor_of`: for each shard. Tables for which `carries` is false are left out. With
  // `every_shard`, shards without rows have a piece, too.
  PooledVector<MessageCut> Cut(std::span<const RowGroup> groups,
                               std::span<const uint32_t> executor_of,
                               const std::function<bool(uint32_t table)>& carries,
                               bool every_shard);

 private:
  struct Piece {
    size_t first_group = 0, end_group = 0;  // Range in groups_.
    size_t rows = 0, bytes = 0;
  };
  void CutShard(std::span<const RowGroup> groups, const std::function<bool(uint32_t)>& carries);
  void Pack(ShardId shard, uint32_t executor, PooledVector<MessageCut>& messages);

  const std::vector<WireTable> tables_;
  const size_t bytes_max_;
  // Members only to reuse their memory.
  std::vector<RowGroup> groups_;  // Groups of the current shard, cut.
  std::vector<Piece> pieces_;     // Pieces of the current shard.
  // By executor: the index of its last message, plus 1; 0: it has none.
  std::vector<uint32_t> filling_;
};

}  // namespace dt::worker
