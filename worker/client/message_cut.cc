#include "worker/client/message_cut.h"

#include <algorithm>

namespace dt::worker {

PooledVector<MessageCut> MessageCutter::Cut(std::span<const RowGroup> groups,
                                            std::span<const uint32_t> executor_of,
                                            const std::function<bool(uint32_t)>& carries,
                                            bool every_shard) {
  PooledVector<MessageCut> messages;
  filling_.assign(filling_.size(), 0);
  size_t begin = 0;
  for (uint32_t shard = 0; shard < executor_of.size(); ++shard) {
    size_t end = begin;
    while (end < groups.size() && groups[end].shard == ShardId(shard)) ++end;
    CutShard(groups.subspan(begin, end - begin), carries);
    if (every_shard && pieces_.empty()) pieces_.emplace_back();
    Pack(ShardId(shard), executor_of[shard], messages);
    begin = end;
  }
  return messages;
}

// Fills pieces with whole groups as long as they fit; cuts a group that does not.
void MessageCutter::CutShard(std::span<const RowGroup> groups,
                             const std::function<bool(uint32_t)>& carries) {
  groups_.clear();
  pieces_.clear();
  for (RowGroup group : groups) {
    if (!carries(group.table)) continue;
    const WireTable& wire = tables_[group.table];
    const size_t row_bytes = sizeof(Key) + RowBytes(wire.format, wire.dim);
    while (group.rows > 0) {
      if (pieces_.empty() || pieces_.back().bytes + row_bytes > bytes_max_) {
        pieces_.push_back({groups_.size(), groups_.size(), 0, 0});
      }
      Piece& piece = pieces_.back();
      const size_t left = bytes_max_ - std::min(piece.bytes, bytes_max_);
      const auto fit = static_cast<uint32_t>(
          std::min<size_t>(group.rows, std::max<size_t>(left / row_bytes, 1)));
      groups_.push_back({group.shard, group.table, group.first, fit});
      ++piece.end_group;
      piece.rows += fit;
      piece.bytes += fit * row_bytes;
      group.first += fit;
      group.rows -= fit;
    }
  }
}

void MessageCutter::Pack(ShardId shard, uint32_t executor, PooledVector<MessageCut>& messages) {
  if (filling_.size() <= executor) filling_.resize(executor + 1, 0);
  const auto pieces = static_cast<uint32_t>(pieces_.size());
  for (uint32_t p = 0; p < pieces; ++p) {
    const Piece& piece = pieces_[p];
    uint32_t& last = filling_[executor];
    // Two pieces of a shard never share a message.
    if (last == 0 || p > 0 || messages[last - 1].bytes + piece.bytes > bytes_max_) {
      messages.emplace_back().executor = executor;
      last = static_cast<uint32_t>(messages.size());
    }
    MessageCut& message = messages[last - 1];
    message.pieces.push_back({shard, p, pieces});
    message.groups.insert(message.groups.end(), groups_.begin() + piece.first_group,
                          groups_.begin() + piece.end_group);
    message.rows += piece.rows;
    message.bytes += piece.bytes;
  }
}

}  // namespace dt::worker
