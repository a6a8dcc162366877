// Goal: only who takes part is remembered. Method: packets by hand, what is sent is counted.
#include "scheduler/service/switchboard.h"

#include <algorithm>

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
  // Whether the board takes it up.
  bool Ask(TimePoint now, uint64_t id) {
    return board_.OnPacket(now, "peer", {id, 1, 0, EncodeControl(StatusRequestMessage{})}).size() ==
           1;
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

TEST_F(SwitchboardTest, WhoHasEndedIsForgottenAtOnce) {
  Join(1);
  board_.Send(kStart, Incarnation(1), StopMessage{});
  EXPECT_FALSE(board_.all_acknowledged(kStart));
  board_.Forget(Incarnation(1));
  EXPECT_TRUE(board_.all_acknowledged(kStart));
  EXPECT_FALSE(Knows(kStart, 1));
  const std::string late = EncodeControl(FailedMessage{});
  EXPECT_TRUE(board_.OnPacket(kStart, "peer", {1, 2, 0, late}).empty());
}

TEST_F(SwitchboardTest, WhoAsksForTheStatusKeepsNobodyOut) {
  for (uint64_t id = 1; id <= 5000; ++id) {
    EXPECT_TRUE(Ask(kStart + milliseconds(id), id));
    EXPECT_TRUE(Knows(kStart + milliseconds(id), id)) << "until it has its answer";
  }
  Join(10'000);
  EXPECT_TRUE(Knows(kStart + seconds(6), 10'000));
  for (uint64_t id = 1; id <= 5000; ++id) {
    EXPECT_EQ(Knows(kStart + seconds(6), id), id > 5000 - 64) << id;
  }
}

TEST_F(SwitchboardTest, WhoIsRefusedKeepsNobodyOut) {
  for (uint64_t id = 1; id <= 5000; ++id) {
    Join(id);
    board_.Send(kStart, Incarnation(id), RefusedMessage{});
  }
  Join(10'000);
  EXPECT_TRUE(Knows(kStart, 10'000));
}

TEST_F(SwitchboardTest, GuestsHoldABoundedNumberOfBytes) {
  Join(1);
  const StatusReplyMessage reply{std::string(4 << 20, ' ')};
  for (uint64_t id = 1; id <= 40; ++id) {
    EXPECT_EQ(Ask(kStart, id), id > 1);
    board_.Send(kStart, Incarnation(id), reply);
  }
  int known = 0;
  for (uint64_t id = 2; id <= 40; ++id) known += Knows(kStart, id) ? 1 : 0;
  EXPECT_EQ(known, 15) << "16 replies are more than 64 MiB";
  EXPECT_TRUE(Knows(kStart, 1));
}

// One that asks a thousand times and never says that it has the answers.
TEST_F(SwitchboardTest, WhatIsDroppedIsLoggedOnceAMinute) {
  EXPECT_TRUE(Ask(kStart, 1));
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 5000; ++i) board_.Send(kStart, Incarnation(1), StatusReplyMessage{});
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
}

TEST_F(SwitchboardTest, OnlyWhoHasJoinedMaySendMuch) {
  JoinMessage large;
  large.incarnation = Incarnation(1);
  large.endpoints.assign(64, std::string(100, 'e'));
  large.devices.assign(9, {DeviceKind::kCuda, 0, std::string(100, 'd'), 1,
                           std::vector<std::string>(100, std::string(20, 'o'))});
  EXPECT_LE(EncodeControl(large).size(), board_.PayloadBytesMax(1));
  EXPECT_EQ(board_.PayloadBytesMax(1), 64u << 10);
  Join(1);
  EXPECT_EQ(board_.PayloadBytesMax(1), kPartBytesMax);
  board_.Send(kStart, Incarnation(1), RefusedMessage{});
  EXPECT_EQ(board_.PayloadBytesMax(1), 64u << 10);
  EXPECT_TRUE(Ask(kStart, 2));
  EXPECT_EQ(board_.PayloadBytesMax(2), 64u << 10);
}

TEST_F(SwitchboardTest, NoLineBeginsWithAnythingElse) {
  EXPECT_TRUE(board_.OnPacket(kStart, "peer", {3, 1, 0, EncodeControl(ReadyMessage{})}).empty());
  EXPECT_TRUE(board_.OnPacket(kStart, "peer", {3, 1, 0, "garbage"}).empty());
  EXPECT_FALSE(Knows(kStart, 3));
  EXPECT_EQ(board_.malformed(), 1u);
}

}  // namespace
}  // namespace dt::scheduler
