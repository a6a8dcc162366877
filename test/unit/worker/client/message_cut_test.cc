// Goal: a shard's rows are divided into the same pieces by every sender and under every map, and
// every row is sent once. Method: random groups, divided for random executors.
#include "worker/client/message_cut.h"

#include <map>

#include <gtest/gtest.h>

#include "common/base/philox.h"

namespace dt::worker {
namespace {

constexpr uint32_t kShards = 8;
constexpr size_t kBytesMax = 400;
const std::vector<WireTable> kTables = {{3}, {5, FloatFormat::kInt8}, {1}};
// Bytes of a row with its key.
size_t RowBytesOf(uint32_t table) {
  return sizeof(Key) + RowBytes(kTables[table].format, kTables[table].dim);
}

std::vector<RowGroup> RandomGroups(uint64_t seed, uint32_t rows_max) {
  std::vector<RowGroup> groups;
  std::vector<uint32_t> first(kTables.size());
  for (uint32_t s = 0; s < kShards; ++s) {
    for (uint32_t t = 0; t < kTables.size(); ++t) {
      const uint32_t rows = Philox(seed, s, t)[0] % (rows_max + 1);
      if (rows == 0) continue;
      groups.push_back({ShardId(s), t, first[t], rows});
      first[t] += rows;
    }
  }
  return groups;
}

std::vector<uint32_t> RandomExecutors(uint64_t seed) {
  std::vector<uint32_t> executors;
  for (uint32_t s = 0; s < kShards; ++s) executors.push_back(Philox(seed, 99, s)[0] % 3);
  return executors;
}

PooledVector<MessageCut> Cut(std::span<const RowGroup> groups,
                             const std::vector<uint32_t>& executors, bool every_shard) {
  MessageCutter cutter(kTables, kBytesMax);
  return cutter.Cut(
      groups, executors, [](uint32_t) { return true; }, every_shard);
}

// The groups of each (shard, piece); and the number of pieces of each shard.
using Pieces = std::map<std::pair<ShardId, uint32_t>, std::vector<std::array<uint32_t, 3>>>;
Pieces PiecesOf(const PooledVector<MessageCut>& messages, std::map<ShardId, uint32_t>& numbers) {
  Pieces pieces;
  for (const MessageCut& message : messages) {
    for (const ShardPiece& piece : message.pieces) {
      EXPECT_LT(piece.piece, piece.pieces);
      const uint32_t number = numbers.try_emplace(piece.shard, piece.pieces).first->second;
      EXPECT_EQ(number, piece.pieces);
      auto& groups = pieces[{piece.shard, piece.piece}];
      EXPECT_TRUE(groups.empty());
      for (const RowGroup& g : message.groups) {
        if (g.shard == piece.shard) groups.push_back({g.table, g.first, g.rows});
      }
    }
  }
  return pieces;
}

TEST(MessageCut, PiecesDoNotDependOnWhoGetsThem) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<RowGroup> groups = RandomGroups(seed, seed % 2 == 0 ? 5 : 60);
    std::map<ShardId, uint32_t> numbers;
    const Pieces pieces = PiecesOf(Cut(groups, RandomExecutors(seed), true), numbers);
    EXPECT_EQ(numbers.size(), kShards);
    size_t count = 0;
    for (const auto& [shard, number] : numbers) count += number;
    EXPECT_EQ(pieces.size(), count);
    EXPECT_EQ(PiecesOf(Cut(groups, std::vector<uint32_t>(kShards), true), numbers), pieces);
    EXPECT_EQ(PiecesOf(Cut(groups, RandomExecutors(seed + 1), true), numbers), pieces);
  }
}

TEST(MessageCut, EveryRowTravelsOnceInOrderWithinTheLimit) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<RowGroup> groups = RandomGroups(seed, 60);
    const std::vector<uint32_t> executors = RandomExecutors(seed);
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> rows;  // Counts by (table, row).
    for (const MessageCut& message : Cut(groups, executors, false)) {
      size_t bytes = 0, count = 0;
      for (size_t i = 0; i < message.groups.size(); ++i) {
        const RowGroup& g = message.groups[i];
        EXPECT_EQ(executors[g.shard.value()], message.executor);
        if (i > 0) {
          EXPECT_LT(std::pair(message.groups[i - 1].shard, message.groups[i - 1].table),
                    std::pair(g.shard, g.table));
        }
        for (uint32_t r = 0; r < g.rows; ++r) ++rows[{g.table, g.first + r}];
        bytes += g.rows * RowBytesOf(g.table);
        count += g.rows;
      }
      EXPECT_EQ(message.bytes, bytes);
      EXPECT_EQ(message.rows, count);
      EXPECT_LE(bytes, kBytesMax);
      EXPECT_GT(count, 0u);
    }
    size_t all = 0;
    for (const RowGroup& g : groups) all += g.rows;
    EXPECT_EQ(rows.size(), all);
    for (const auto& [row, times] : rows) EXPECT_EQ(times, 1u);
  }
}

TEST(MessageCut, SmallPiecesShareAMessageAndARowMayBeLargerThanOne) {
  std::vector<RowGroup> groups = {{ShardId(1), 0, 0, 2}, {ShardId(4), 0, 2, 2}};
  EXPECT_EQ(Cut(groups, std::vector<uint32_t>(kShards), true).size(), 1u);
  MessageCutter narrow(kTables, 10);
  const auto all = [](uint32_t) { return true; };
  EXPECT_EQ(narrow.Cut(groups, std::vector<uint32_t>(kShards), all, false).size(), 4u);
}

TEST(MessageCut, TablesThatCarryNothingAreLeftOut) {
  const std::vector<RowGroup> groups = RandomGroups(3, 60);
  MessageCutter cutter(kTables, kBytesMax);
  const auto only_last = [](uint32_t table) { return table == 2; };
  size_t rows = 0, expected = 0;
  for (const auto& message : cutter.Cut(groups, std::vector<uint32_t>(kShards), only_last, true)) {
    for (const RowGroup& g : message.groups) {
      EXPECT_EQ(g.table, 2u);
      rows += g.rows;
    }
  }
  for (const RowGroup& g : groups) expected += g.table == 2 ? g.rows : 0;
  EXPECT_EQ(rows, expected);
}

}  // namespace
}  // namespace dt::worker
