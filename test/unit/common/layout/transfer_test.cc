#include "common/layout/transfer.h"

#include <map>

#include <gtest/gtest.h>

#include "test/support/cut_dims.h"

namespace dt {
namespace {

TEST(Transfer, ARankKeepsWhatItHas) {
  const Layout rows{.matrix = {4}, .dims = {Over({0})}};
  const Layout pairs{.matrix = {2, 2}, .dims = {Over({0})}};
  const Transfer transfer = TransferBetween(rows, pairs, {8});
  EXPECT_EQ(transfer.moves[0], (BoxMove{0, 0, {{0, 2}}}));
  EXPECT_EQ(transfer.moves[1], (BoxMove{1, 0, {{2, 4}}}));
  EXPECT_EQ(transfer.moves.size(), 8U);
  EXPECT_EQ(transfer.most, 2);
}

TEST(Transfer, HoldersOfCopiesShareTheWork) {
  const Layout copies{.matrix = {3}, .dims = {{}}, .ranks = {0, 1, 2}};
  const Layout rows{.matrix = {6}, .dims = {Over({0})}, .ranks = {10, 11, 12, 13, 14, 15}};
  std::map<uint32_t, int64_t> sent;
  for (const BoxMove& move : TransferBetween(copies, rows, {12}).moves) {
    sent[move.from] += ElementsOf(move.box);
  }
  EXPECT_EQ(sent, (std::map<uint32_t, int64_t>{{0, 4}, {1, 4}, {2, 4}}));
}

TEST(Transfer, TheNearestOfEqualHoldersSends) {
  const Layout copies{.matrix = {2}, .dims = {{}}, .ranks = {0, 8}};
  const Layout one{.matrix = {}, .dims = {{}}, .ranks = {7}};
  EXPECT_EQ(TransferBetween(copies, one, {3}).moves, (std::vector<BoxMove>{{8, 7, {{0, 3}}}}));
}

TEST(Transfer, BoxesOfOneHolderAreJoined) {
  const Layout uneven{.matrix = {2, 2}, .dims = {Over({0, 1}), {}}};
  const Layout whole{.matrix = {}, .dims = {{}, {}}, .ranks = {9}};
  EXPECT_EQ(TransferBetween(uneven, whole, {5, 4}).moves.size(), 4U);
  const Layout one{.matrix = {}, .dims = {{}, {}}};
  const Layout columns{.matrix = {3}, .dims = {{}, Over({0})}};
  EXPECT_EQ(TransferBetween(one, columns, {5, 3}).moves.size(), 3U);
}

TEST(Transfer, OnlyNeededRanksSend) {
  const Layout rows{.matrix = {6}, .dims = {Over({0})}};
  const Layout halves{.matrix = {2}, .dims = {Over({0})}};
  EXPECT_EQ(SendersTo(rows, halves, {12}, 1), (RankList{3, 4, 5}));
  EXPECT_EQ(SendersTo(rows, halves, {0}, 1), RankList());
}

}  // namespace
}  // namespace dt
