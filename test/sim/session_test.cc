// Goal: whatever the network does, no message is delivered twice or out of order, and once the
// network heals, every message is delivered. Method: two sessions on a seeded network send numbers
// to each other.
#include "common/control/session.h"

#include <gtest/gtest.h>

#include "test/support/sim_network.h"
#include "test/support/sim_seeds.h"

namespace dt {
namespace {

constexpr uint64_t kMessages = 400;
constexpr Duration kTick = milliseconds(5);

struct Side {
  Side() : session(7, milliseconds(40)) {}
  Session session;
  uint64_t sent = 0;
  uint64_t received = 0;
};

struct Addressed {
  int to = 0;
  Packet packet;
};

class SessionSim : public ::testing::TestWithParam<uint64_t> {
 protected:
  SessionSim() : network_(GetParam()) {}

  // Advances both sides by one tick. With `issue`, each side sends a message with probability 1/2.
  void Step(bool issue) {
    now_ += kTick;
    for (int i = 0; i < 2; ++i) {
      std::vector<Packet> out;
      Side& side = sides_[i];
      if (issue && side.sent < kMessages && network_.Chance(0.5) &&
          side.session.Send(now_, std::to_string(side.sent), out).ok()) {
        ++side.sent;
      }
      side.session.Tick(now_, out);
      Put(1 - i, out);
    }
    for (Addressed& arrived : network_.Take(now_)) {
      std::vector<Packet> out;
      std::vector<std::string> delivered;
      Side& side = sides_[arrived.to];
      side.session.OnPacket(now_, std::move(arrived.packet), delivered, out);
      Put(1 - arrived.to, out);
      for (const std::string& payload : delivered) {
        ASSERT_EQ(payload, std::to_string(side.received++)) << Repeat(GetParam());
      }
    }
  }
  void Put(int to, const std::vector<Packet>& packets) {
    for (const Packet& packet : packets) network_.Put(now_, {to, packet});
  }

  SimNetwork<Addressed> network_;
  TimePoint now_{};
  Side sides_[2];
};

TEST_P(SessionSim, DeliversEachMessageOnceAndInOrder) {
  network_.Misbehave({.drop = 0.3, .duplicate = 0.2, .delay_max = milliseconds(150)});
  for (int i = 0; i < 1000; ++i) Step(true);
  network_.Heal();
  for (int i = 0; i < 2000; ++i) Step(true);
  for (const Side& side : sides_) {
    EXPECT_EQ(side.sent, kMessages) << Repeat(GetParam());
    EXPECT_EQ(side.received, kMessages) << Repeat(GetParam());
    EXPECT_TRUE(side.session.all_acknowledged()) << Repeat(GetParam());
  }
}

TEST_P(SessionSim, HoldsOutThroughASilentNetwork) {
  network_.Misbehave({.drop = 1.0});
  for (int i = 0; i < 1000; ++i) Step(true);
  EXPECT_EQ(sides_[0].received, 0u);
  network_.Heal();
  for (int i = 0; i < 1000; ++i) Step(true);
  EXPECT_EQ(sides_[0].received, kMessages) << Repeat(GetParam());
  EXPECT_EQ(sides_[1].received, kMessages) << Repeat(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Seeds, SessionSim, ::testing::ValuesIn(SimSeeds()));

}  // namespace
}  // namespace dt
