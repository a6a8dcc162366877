// Goal: streams keep the order of a turn, what waits in one turn holds up no other, all workers
// communicate in the order of their turns, and joins wait for the other slices. Method: one thread
// asks for the work of several streams, and ends it, in chosen orders.
#include "worker/engine/turns.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dt::worker {
namespace {

constexpr Duration kLong = seconds(20);

// A forward pass on the CPU, communication of it, the backward pass, the sum of its gradients.
std::vector<Subgraph> FiveSubgraphs() {
  std::vector<Subgraph> train(5);
  const Stream streams[] = {Stream::kCpu, Stream::kComm, Stream::kCpu, Stream::kComm, Stream::kCpu};
  const Phase phases[] = {Phase::kSlice, Phase::kSlice, Phase::kSlice, Phase::kJoin, Phase::kStep};
  for (size_t s = 0; s < train.size(); ++s) {
    train[s].stream = streams[s];
    train[s].phase = phases[s];
  }
  train[0].needs_rows = true;
  train[1].waits = {0};
  train[2].waits = {1};
  train[3].waits = {2};
  return train;
}

class TurnsTest : public ::testing::Test {
 protected:
  void Begin(size_t lane, const Phases& phases) {
    turns_.Begin({.subgraphs = &train_, .phases = phases, .lane = lane});
  }
  void BeginTwoSlices() {
    Begin(0, dt::kSlices);
    Begin(1, dt::kSlicesAndJoins);
    turns_.GiveRows(0);
    turns_.GiveRows(1);
  }
  // The lane and number of the subgraph that the stream gets next.
  std::pair<size_t, uint32_t> Take(Stream stream) {
    taken_.push_back(*turns_.Next(stream));
    return {taken_.back().pass->lane, taken_.back().subgraph};
  }
  // Ends what was taken as the n-th.
  void End(size_t n) { turns_.End(taken_[n]); }

  const std::vector<Subgraph> train_ = FiveSubgraphs();
  Turns turns_{2, true};
  std::vector<Turns::Work> taken_;
};

using ::testing::HasSubstr;
using ::testing::Pair;

TEST_F(TurnsTest, ATurnThatWaitsForItsRowsHoldsUpNoOther) {
  Begin(0, dt::kSlices);
  Begin(1, dt::kSlicesAndJoins);
  turns_.GiveRows(1);
  EXPECT_THAT(Take(Stream::kCpu), Pair(1, 0));
  turns_.GiveRows(0);
  EXPECT_THAT(Take(Stream::kCpu), Pair(0, 0));
}

TEST_F(TurnsTest, CommunicationKeepsTheOrderOfTurns) {
  BeginTwoSlices();
  EXPECT_THAT(Take(Stream::kCpu), Pair(0, 0));
  EXPECT_THAT(Take(Stream::kCpu), Pair(1, 0));
  End(1);
  std::jthread first([this] { End(0); });
  EXPECT_THAT(Take(Stream::kComm), Pair(0, 1)) << "though the later turn was ready before";
  EXPECT_THAT(Take(Stream::kComm), Pair(1, 1));
}

TEST_F(TurnsTest, AJoinWaitsForTheSlicesBefore) {
  BeginTwoSlices();
  EXPECT_THAT(Take(Stream::kCpu), Pair(0, 0));
  End(0);
  EXPECT_THAT(Take(Stream::kComm), Pair(0, 1));
  End(1);
  EXPECT_THAT(Take(Stream::kCpu), Pair(0, 2));
  // The backward pass of the first slice is under way, and that of the second one ends.
  EXPECT_THAT(Take(Stream::kCpu), Pair(1, 0));
  End(3);
  EXPECT_THAT(Take(Stream::kComm), Pair(1, 1));
  End(4);
  EXPECT_THAT(Take(Stream::kCpu), Pair(1, 2));
  End(5);
  EXPECT_EQ(turns_.WaitFor(1, 3, milliseconds(50)).code(), StatusCode::kDeadlineExceeded);
  std::jthread late([this] { End(2); });
  EXPECT_THAT(Take(Stream::kComm), Pair(1, 3));
  End(6);
  for (const size_t lane : {0, 1}) EXPECT_EQ(ToText(turns_.WaitForTurn(lane, kLong)), "");
}

TEST_F(TurnsTest, ATeamWithoutSlicesJoinsAtOnce) {
  Begin(0, kJoins);
  EXPECT_THAT(Take(Stream::kComm), Pair(0, 3));
  End(0);
  EXPECT_EQ(ToText(turns_.WaitForTurn(0, kLong)), "");
  Begin(0, kSteps);
  EXPECT_THAT(Take(Stream::kCpu), Pair(0, 4));
}

TEST_F(TurnsTest, WithoutOverlapSubgraphsRunOneByOne) {
  Turns turns(1, false);
  std::vector<Subgraph> train = FiveSubgraphs();
  for (Subgraph& subgraph : train) subgraph.waits.clear();
  turns.Begin({.subgraphs = &train, .phases = dt::kSlicesAndJoins});
  turns.GiveRows(0);
  for (uint32_t s = 0; s < 4; ++s) {
    const auto work = turns.Next(train[s].stream);
    ASSERT_EQ(work->subgraph, s);
    EXPECT_EQ(turns.WaitForTurn(0, milliseconds(1)).code(), StatusCode::kDeadlineExceeded);
    turns.End(*work);
  }
  EXPECT_EQ(ToText(turns.WaitForTurn(0, kLong)), "");
}

TEST_F(TurnsTest, AFailureEndsAllWaitsAndNothingBegins) {
  Begin(0, dt::kSlicesAndJoins);
  turns_.GiveRows(0);
  EXPECT_THAT(Take(Stream::kCpu), Pair(0, 0));
  std::jthread waits([this] { EXPECT_FALSE(turns_.Next(Stream::kComm).has_value()); });
  turns_.Fail(Unavailable("the card is gone"));
  turns_.Fail(Unavailable("something that follows from it"));
  EXPECT_THAT(ToText(turns_.WaitForTurn(0, kLong)), HasSubstr("the card is gone"));
  EXPECT_THAT(ToText(turns_.WaitFor(0, 2, kLong)), HasSubstr("the card is gone"));
  std::jthread ends([this] { End(0); });
  turns_.WaitUntilIdle(kLong);
  EXPECT_FALSE(turns_.Next(Stream::kCpu).has_value());
}

}  // namespace
}  // namespace dt::worker
