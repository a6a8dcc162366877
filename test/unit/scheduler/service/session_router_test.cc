// Goal: only members are remembered. Method: packets made by the test; sent packets are counted.
#include "scheduler/service/session_router.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

const TimePoint kStart{};

class SessionRouterTest : public ::testing::Test {
 protected:
  void Join(uint64_t id) {
    JoinMessage join;
    join.incarnation = Incarnation(id);
    EXPECT_EQ(router_.OnPacket(kStart, "peer", {id, 1, 0, EncodeControl(join)}).size(), 1u);
  }
  // Sends a status request; returns true if the router accepts it.
  bool Ask(TimePoint now, uint64_t id) {
    return router_.OnPacket(now, "peer", {id, 1, 0, EncodeControl(StatusRequestMessage{})})
               .size() == 1;
  }
  // Returns true if a message to this session is still sent.
  bool Knows(TimePoint now, uint64_t id) {
    const size_t before = sent_.size();
    router_.Send(now, Incarnation(id), StopMessage{});
    return sent_.size() > before;
  }

  std::vector<Packet> sent_;
  SessionRouter router_{milliseconds(300),
                        [this](const PeerId&, const Packet& packet) { sent_.push_back(packet); }};
};

TEST_F(SessionRouterTest, WhoIsRefusedIsForgotten) {
  Join(1);
  Join(2);
  router_.Send(kStart, Incarnation(2), RefusedMessage{});
  router_.Tick(kStart + seconds(1));
  EXPECT_TRUE(Knows(kStart + seconds(1), 2)) << "the refusal may still have to be sent again";
  router_.Tick(kStart + seconds(60));
  EXPECT_TRUE(Knows(kStart + seconds(60), 1));
  EXPECT_FALSE(Knows(kStart + seconds(60), 2));
}

TEST_F(SessionRouterTest, WhoIsExpectedIsWaitedFor) {
  std::list<Member> members(2);
  members.front().join.incarnation = Incarnation(1);
  members.back().join.incarnation = Incarnation(2);
  router_.Expect(members);
  Join(1);
  EXPECT_FALSE(router_.all_acknowledged(kStart));
  Join(2);
  EXPECT_TRUE(router_.all_acknowledged(kStart));
}

TEST_F(SessionRouterTest, WhoHasEndedIsForgottenAtOnce) {
  Join(1);
  router_.Send(kStart, Incarnation(1), StopMessage{});
  EXPECT_FALSE(router_.all_acknowledged(kStart));
  router_.Forget(Incarnation(1));
  EXPECT_TRUE(router_.all_acknowledged(kStart));
  EXPECT_FALSE(Knows(kStart, 1));
  const std::string late = EncodeControl(FailedMessage{});
  EXPECT_TRUE(router_.OnPacket(kStart, "peer", {1, 2, 0, late}).empty());
}

TEST_F(SessionRouterTest, WhoIsUnknownIsToldSoOnceAPacketAndBeginsAnew) {
  Join(1);
  const std::string report = EncodeControl(ReadyMessage{});
  sent_.clear();
  router_.SetTerm(Term(6));
  EXPECT_TRUE(router_.OnPacket(kStart, "peer", {2, 5, 0, report}).empty());
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_TRUE(sent_[0].unknown);
  EXPECT_EQ(sent_[0].session, 2u);
  EXPECT_EQ(sent_[0].number, 1u);
  EXPECT_EQ(sent_[0].term, 6u);
  // An acknowledgement, and another's "unknown", need no answer.
  router_.OnPacket(kStart, "peer", {2, 0, 7, ""});
  router_.OnPacket(kStart, "peer", {.session = 2, .unknown = true});
  EXPECT_EQ(sent_.size(), 1u);
}

TEST_F(SessionRouterTest, ALaterSessionTakesThePlaceOfTheEarlierOne) {
  Join(1);
  sent_.clear();
  const auto say = [&](uint64_t number, uint64_t sequence, const ControlMessage& message) {
    return router_.OnPacket(kStart, "peer", {1, sequence, 0, EncodeControl(message), number})
        .size();
  };
  EXPECT_EQ(say(2, 2, ReadyMessage{}), 0u) << "another scheduler had its Join";
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_TRUE(sent_[0].unknown);
  EXPECT_EQ(say(1, 2, ReadyMessage{}), 1u) << "the earlier one goes on until then";
  EXPECT_EQ(say(2, 1, JoinMessage{.incarnation = Incarnation(1)}), 1u);
  EXPECT_EQ(say(1, 3, ReadyMessage{}), 0u);
  EXPECT_EQ(say(2, 2, ReadyMessage{}), 1u);
}

// The process exits without reading further messages, so it will never acknowledge them.
TEST_F(SessionRouterTest, WhoHasSaidThatItLeavesOrHasFailedIsNotWaitedFor) {
  for (const ControlMessage& goodbye :
       {ControlMessage(LeavingMessage{}), ControlMessage(FailedMessage{})}) {
    const uint64_t id = 1 + goodbye.index();
    Join(id);
    router_.Send(kStart, Incarnation(id), StopMessage{});
    EXPECT_FALSE(router_.all_acknowledged(kStart));
    router_.OnPacket(kStart, "peer", {id, 2, 0, EncodeControl(goodbye)});
    EXPECT_TRUE(router_.all_acknowledged(kStart));
    EXPECT_TRUE(Knows(kStart, id)) << "what it asks may still be answered";
  }
}

TEST_F(SessionRouterTest, WhoAsksForTheStatusKeepsNobodyOut) {
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

TEST_F(SessionRouterTest, WhoIsRefusedKeepsNobodyOut) {
  for (uint64_t id = 1; id <= 5000; ++id) {
    Join(id);
    router_.Send(kStart, Incarnation(id), RefusedMessage{});
  }
  Join(10'000);
  EXPECT_TRUE(Knows(kStart, 10'000));
}

TEST_F(SessionRouterTest, GuestsHoldABoundedNumberOfBytes) {
  Join(1);
  const StatusReplyMessage reply{std::string(4 << 20, ' ')};
  for (uint64_t id = 1; id <= 40; ++id) {
    EXPECT_EQ(Ask(kStart, id), id > 1);
    router_.Send(kStart, Incarnation(id), reply);
  }
  int known = 0;
  for (uint64_t id = 2; id <= 40; ++id) known += Knows(kStart, id) ? 1 : 0;
  EXPECT_EQ(known, 15) << "16 replies are more than 64 MiB";
  EXPECT_TRUE(Knows(kStart, 1));
}

// The peer sends a thousand requests and never acknowledges the answers.
TEST_F(SessionRouterTest, WhatIsDroppedIsLoggedOnceAMinute) {
  EXPECT_TRUE(Ask(kStart, 1));
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 5000; ++i) router_.Send(kStart, Incarnation(1), StatusReplyMessage{});
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
}

TEST_F(SessionRouterTest, OnlyWhoHasJoinedMaySendMuch) {
  JoinMessage large;
  large.incarnation = Incarnation(1);
  large.endpoints.assign(64, std::string(100, 'e'));
  large.devices.assign(9, {DeviceKind::kCuda, 0, std::string(100, 'd'), 1,
                           std::vector<std::string>(100, std::string(20, 'o'))});
  EXPECT_LE(EncodeControl(large).size(), router_.PayloadBytesMax(1));
  EXPECT_EQ(router_.PayloadBytesMax(1), 64u << 10);
  Join(1);
  EXPECT_EQ(router_.PayloadBytesMax(1), kPartBytesMax);
  router_.Send(kStart, Incarnation(1), RefusedMessage{});
  EXPECT_EQ(router_.PayloadBytesMax(1), 64u << 10);
  EXPECT_TRUE(Ask(kStart, 2));
  EXPECT_EQ(router_.PayloadBytesMax(2), 64u << 10);
}

TEST_F(SessionRouterTest, NoLineBeginsWithAnythingElse) {
  EXPECT_TRUE(router_.OnPacket(kStart, "peer", {3, 1, 0, EncodeControl(ReadyMessage{})}).empty());
  EXPECT_TRUE(router_.OnPacket(kStart, "peer", {3, 1, 0, "garbage"}).empty());
  EXPECT_FALSE(Knows(kStart, 3));
  EXPECT_EQ(router_.malformed(), 1u);
}

}  // namespace
}  // namespace dt::scheduler
