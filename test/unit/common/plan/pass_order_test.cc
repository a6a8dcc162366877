// Goal: a node is known to have ended exactly where the order of streams and waits implies it, also
// indirectly. Method: a hand-made pass.
#include "common/plan/pass_order.h"

#include <gtest/gtest.h>

namespace dt {
namespace {

Subgraph Piece(Stream stream, std::vector<NodeIndex> nodes, std::vector<uint32_t> waits = {}) {
  Subgraph subgraph;
  subgraph.stream = stream;
  subgraph.nodes = std::move(nodes);
  subgraph.waits = std::move(waits);
  return subgraph;
}

// cpu:    [0 1]          [4]      [6]
// to gpu:      ▸ [2]
// gpu:             ▸ [3] ▸ (4)  [5]
std::vector<Subgraph> Drawn() {
  return {Piece(Stream::kCpu, {0, 1}),   Piece(Stream::kToGpu, {2}, {0}),
          Piece(Stream::kGpu, {3}, {1}), Piece(Stream::kCpu, {4}, {2}),
          Piece(Stream::kGpu, {5}),      Piece(Stream::kCpu, {6})};
}

TEST(PassOrderTest, FollowsStreamsAndWaits) {
  const std::vector<Subgraph> pass = Drawn();
  const PassOrder order(pass, kSlices, 8);
  EXPECT_TRUE(order.Before(0, 1));  // Both are in one subgraph.
  EXPECT_FALSE(order.Before(1, 0));
  EXPECT_TRUE(order.Before(1, 2));  // A subgraph waits for the other.
  EXPECT_TRUE(order.Before(0, 3));  // The order follows through another stream.
  EXPECT_TRUE(order.Before(2, 4));
  EXPECT_TRUE(order.Before(2, 6));   // The order is transitive.
  EXPECT_FALSE(order.Before(5, 6));  // They may run at the same time.
  EXPECT_FALSE(order.Before(6, 5));
  EXPECT_FALSE(order.Before(4, 5));
}

TEST(PassOrderTest, KnowsWhatRuns) {
  std::vector<Subgraph> pass = Drawn();
  pass.back().phase = Phase::kStep;
  const PassOrder order(pass, kSlices, 8);
  EXPECT_TRUE(order.Runs(5));
  EXPECT_FALSE(order.Runs(6));  // It belongs to the other phase.
  EXPECT_FALSE(order.Runs(7));
}

}  // namespace
}  // namespace dt
