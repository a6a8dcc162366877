// Goal: only who takes part is remembered. Method: packets by hand, what is sent is counted.
#include "scheduler/service/switchboard.h"

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

const TimePoint kStart{};

class SwitchboardTest : public ::testing::Test {
 protected:
  void Join(uint64_t id) {
    JoinMessage join;
    join.incarnation = Incarnation(id);
    EXPECT_EQ(board_.OnPacket(kStart, "peer", {id, 1, 0, EncodeControl(join)}).size(), 1u);
  }
  // Whether a message to it still goes out.
  bool Knows(TimePoint now, uint64_t id) {
    const int before = sent_;
    board_.Send(now, Incarnation(id), StopMessage{});
    return sent_ > before;
  }

  int sent_ = 0;
  Switchboard board_{milliseconds(300), [this](const PeerId&, const Packet&) { ++sent_; }};
};

TEST_F(SwitchboardTest, WhoIsRefusedIsForgotten) {
  Join(1);
  Join(2);
  board_.Send(kStart, Incarnation(2), RefusedMessage{});
  board_.Tick(kStart + seconds(1));
  EXPECT_TRUE(Knows(kStart + seconds(1), 2)) << "the refusal may still have to be sent again";
  board_.Tick(kStart + seconds(60));
  EXPECT_TRUE(Knows(kStart + seconds(60), 1));
  EXPECT_FALSE(Knows(kStart + seconds(60), 2));
}

TEST_F(SwitchboardTest, NoLineBeginsWithAnythingElse) {
  EXPECT_TRUE(board_.OnPacket(kStart, "peer", {3, 1, 0, EncodeControl(ReadyMessage{})}).empty());
  EXPECT_TRUE(board_.OnPacket(kStart, "peer", {3, 1, 0, "garbage"}).empty());
  EXPECT_FALSE(Knows(kStart, 3));
  EXPECT_EQ(board_.malformed(), 1u);
}

}  // namespace
}  // namespace dt::scheduler
