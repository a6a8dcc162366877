// Goal: whatever the network loses, the link sends and delivers every message once and in order,
// and ends when the scheduler stops it, refuses it, or is silent. Method: the other side is a
// Session; time is simulated.
#include "common/control/link_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/sim_network.h"
#include "test/support/sim_seeds.h"

namespace dt {
namespace {

using ::testing::HasSubstr;

constexpr Duration kTick = milliseconds(10);
constexpr Duration kLease = seconds(3);
constexpr Duration kLong = seconds(60);

// Both sides of a link, and the network between them.
class Link {
 public:
  explicit Link(uint64_t seed = 1) : network_(seed) {}

  void Step() {
    now_ += kTick;
    core_.Tick(now_);
    for (Packet& packet : core_.TakePackets()) network_.Put(now_, {true, std::move(packet)});
    std::vector<Packet> out;
    scheduler_.Tick(now_, out);
    for (Sent& sent : network_.Take(now_)) {
      if (sent.to_scheduler) {
        ToScheduler(std::move(sent.packet), out);
      } else {
        core_.OnPacket(now_, std::move(sent.packet));
      }
    }
    Put(std::move(out));
    for (ControlMessage& message : core_.TakeMessages()) heard.push_back(std::move(message));
  }
  void Run(Duration time) {
    for (const TimePoint end = now_ + time; now_ < end;) Step();
  }
  void RunUntil(const std::function<bool()>& done) {
    for (const TimePoint end = now_ + kLong; now_ < end && !done();) Step();
  }
  void Say(const ControlMessage& message) {
    std::vector<Packet> out;
    ASSERT_TRUE(scheduler_.Send(now_, EncodeControl(message), out).ok());
    Put(std::move(out));
  }
  void Welcome() { Say(WelcomeMessage{ProcessId(4), Term(1), kLease}); }
  // Another scheduler, which knows nothing of the session.
  void Restart() {
    ++term_;
    number_ = 0;
    said.clear();
  }

  LinkCore& core() { return core_; }
  auto& network() { return network_; }
  size_t heartbeats() const { return heartbeats_; }
  std::vector<ControlMessage> said, heard;  // Messages delivered to the link, and to the scheduler.

 private:
  struct Sent {
    bool to_scheduler = false;
    Packet packet;
  };
  void Put(std::vector<Packet> packets) {
    for (Packet& packet : packets) {
      packet.term = term_;
      network_.Put(now_, {false, std::move(packet)});
    }
  }
  void ToScheduler(Packet packet, std::vector<Packet>& out) {
    if (packet.number < number_) return;  // Of an earlier session.
    std::vector<std::string> payloads;
    if (packet.number > number_ && packet.sequence == 1) {
      scheduler_ = Session(77, milliseconds(200), packet.number);
      number_ = packet.number;
      said.clear();
    } else if (packet.number > number_) {
      out.push_back({.session = packet.session, .number = packet.number, .unknown = true});
      return;
    }
    scheduler_.OnPacket(now_, std::move(packet), payloads, out);
    for (const std::string& payload : payloads) {
      auto message = DecodeControl(std::as_bytes(std::span(payload.data(), payload.size())));
      ASSERT_TRUE(message.ok());
      if (std::holds_alternative<HeartbeatMessage>(*message)) {
        ++heartbeats_;
      } else {
        said.push_back(*std::move(message));
      }
    }
  }
  static JoinMessage Join() {
    JoinMessage join;
    join.incarnation = Incarnation(77);
    join.host = "host";
    return join;
  }

  TimePoint now_ = TimePoint() + seconds(100);
  SimNetwork<Sent> network_;
  LinkCore core_{now_, {.join = Join(), .scheduler = "tcp://there", .outage = seconds(60)}};
  Session scheduler_{77, milliseconds(200)};
  uint64_t number_ = 1, term_ = 1;
  size_t heartbeats_ = 0;
};

TEST(LinkCore, JoinsAndShowsLifeFourTimesInALease) {
  Link link;
  link.Run(milliseconds(100));
  ASSERT_EQ(link.said.size(), 1u);
  EXPECT_EQ(std::get<JoinMessage>(link.said[0]).host, "host");
  EXPECT_FALSE(link.core().welcome().has_value());
  EXPECT_EQ(link.heartbeats(), 0u);
  link.Welcome();
  link.Run(2 * kLease);
  EXPECT_EQ(link.core().welcome()->id, ProcessId(4));
  EXPECT_GE(link.heartbeats(), 8u);
  EXPECT_LE(link.heartbeats(), 10u);
}

TEST(LinkCore, SaysAndHearsEverythingOnceInOrderOverABadNetwork) {
  for (const uint64_t seed : SimSeeds()) {
    SCOPED_TRACE(Repeat(seed));
    Link link(seed);
    link.network().Misbehave({.drop = 0.3, .duplicate = 0.3, .delay_max = milliseconds(300)});
    link.Welcome();
    constexpr uint64_t kMessages = 50;
    for (uint64_t i = 0; i < kMessages; ++i) {
      link.core().Send(KvGetMessage{std::to_string(i)});
      link.Say(KvValueMessage{std::to_string(i), ""});
      link.Step();
    }
    link.network().Heal();
    link.Run(seconds(15));
    ASSERT_EQ(link.said.size(), 1 + kMessages);
    ASSERT_EQ(link.heard.size(), kMessages);
    for (uint64_t i = 0; i < kMessages; ++i) {
      EXPECT_EQ(std::get<KvGetMessage>(link.said[1 + i]).key, std::to_string(i));
      EXPECT_EQ(std::get<KvValueMessage>(link.heard[i]).key, std::to_string(i));
    }
    EXPECT_TRUE(link.core().all_acknowledged());
    EXPECT_FALSE(link.core().ended());
  }
}

// These are more messages than a session sends without an acknowledgement.
TEST(LinkCore, WhatTheWindowHasNoRoomForIsSaidLater) {
  Link link;
  link.Welcome();
  for (uint64_t i = 0; i < 3000; ++i) link.core().Send(ReadyMessage{});
  link.Run(seconds(2));
  EXPECT_EQ(link.said.size(), 3001u);
  EXPECT_TRUE(link.core().all_acknowledged());
}

TEST(LinkCore, TellsAnotherSchedulerWhatItMustKnow) {
  for (const uint64_t seed : SimSeeds()) {
    SCOPED_TRACE(Repeat(seed));
    Link link(seed);
    link.network().Misbehave({.drop = 0.3, .duplicate = 0.3, .delay_max = milliseconds(300)});
    link.Welcome();
    link.core().Send(ReadyMessage{});
    link.Say(OrderMessage{1, TrainOrder{}, 1});
    link.Say(OrderMessage{2, TrainOrder{}, 1});
    link.RunUntil([&] { return link.heard.size() == 2; });
    for (const uint64_t order : {1, 2}) link.core().Send(OrderDoneMessage{order, TrainDone{}});
    link.RunUntil([&] { return link.core().all_acknowledged(); });
    link.Say(OrderMessage{3, TrainOrder{}, 2});  // The first one is settled.
    link.RunUntil([&] { return link.heard.size() == 3; });
    ASSERT_EQ(link.heard.size(), 3u);
    link.Run(seconds(1));  // No copy of the first Join is on the way any more.
    link.Restart();
    link.core().Send(OrderDoneMessage{3, TrainDone{}});
    link.RunUntil([&] { return link.said.size() == 4; });
    ASSERT_EQ(link.said.size(), 4u);
    EXPECT_EQ(std::get<JoinMessage>(link.said[0]).id, ProcessId(4));
    EXPECT_TRUE(std::holds_alternative<ReadyMessage>(link.said[1]));
    EXPECT_EQ(std::get<OrderDoneMessage>(link.said[2]).order, 2u);
    EXPECT_EQ(std::get<OrderDoneMessage>(link.said[3]).order, 3u);
    link.Welcome();
    link.Say(OrderMessage{3, TrainOrder{}, 2});  // It does not know that we have it.
    link.Say(OrderMessage{4, TrainOrder{}, 2});
    link.RunUntil([&] { return link.heard.size() == 4; });
    ASSERT_EQ(link.heard.size(), 4u);
    EXPECT_EQ(std::get<OrderMessage>(link.heard[3]).number, 4u);
    EXPECT_FALSE(link.core().ended());
  }
}

// Here the answer of the first one is lost with it: the link has nothing to send again.
TEST(LinkCore, JoinsAnotherSchedulerWhenTheFirstOwesTheWelcome) {
  Link link;
  link.Run(milliseconds(100));
  ASSERT_EQ(link.said.size(), 1u);
  link.Restart();
  link.RunUntil([&] { return !link.said.empty(); });
  ASSERT_EQ(link.said.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<JoinMessage>(link.said[0]));
}

TEST(LinkCore, ARefusalEndsIt) {
  Link link;
  link.Say(RefusedMessage{StatusCode::kFailedPrecondition, {"another job", "x:1", "use its file"}});
  link.Run(milliseconds(100));
  EXPECT_TRUE(link.core().ended());
  EXPECT_EQ(ToText(link.core().end_status()), "another job (x:1); use its file");
}

TEST(LinkCore, AStopEndsIt) {
  Link link;
  link.Welcome();
  link.Run(milliseconds(100));
  link.Say(StopMessage{});
  link.Run(milliseconds(100));
  EXPECT_TRUE(link.core().ended());
  EXPECT_TRUE(link.core().end_status().ok());
}

// The scheduler may end as soon as its Stop is acknowledged.
TEST(LinkCore, TheLastFiguresGoBeforeTheStopIsAcknowledged) {
  LinkCore core({}, {.join = {.incarnation = Incarnation(77)}});
  Session scheduler(77, milliseconds(200));
  std::vector<Packet> packets;
  for (const ControlMessage& message :
       {ControlMessage(WelcomeMessage{ProcessId(4), Term(1), kLease}),
        ControlMessage(StopMessage{})}) {
    ASSERT_TRUE(scheduler.Send({}, EncodeControl(message), packets).ok());
  }
  core.OnPacket({}, packets[0]);
  core.TakePackets();
  core.OnPacket({}, packets[1]);
  const std::vector<Packet> last = core.TakePackets();
  ASSERT_EQ(last.size(), 2u);
  const auto figures = DecodeControl(std::as_bytes(std::span(last[0].payload)));
  ASSERT_TRUE(figures.ok());
  EXPECT_TRUE(std::holds_alternative<HeartbeatMessage>(*figures));
  EXPECT_EQ(last[0].ack, 2u);
  EXPECT_EQ(last[1].ack, 2u);
}

TEST(LinkCore, SilenceEndsItWithTheAddress) {
  Link link;
  link.Welcome();
  link.Run(seconds(1));
  link.network().Misbehave({.drop = 1});
  link.Run(seconds(59));
  EXPECT_FALSE(link.core().ended());
  link.Run(seconds(2));
  EXPECT_TRUE(link.core().ended());
  EXPECT_THAT(ToText(link.core().end_status()), HasSubstr("tcp://there has been silent for 60 s"));
}

TEST(LinkCore, PacketsOfOtherSessionsAreNobodysBusiness) {
  Link link;
  Session other(78, milliseconds(200));
  std::vector<Packet> out;
  ASSERT_TRUE(other.Send({}, EncodeControl(StopMessage{}), out).ok());
  link.core().OnPacket({}, out[0]);
  EXPECT_FALSE(link.core().ended());
}

}  // namespace
}  // namespace dt
