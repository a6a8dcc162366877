#include "common/control/session.h"

#include <gtest/gtest.h>

namespace dt {
namespace {

constexpr Duration kResend = milliseconds(100);

std::vector<std::string> Deliver(Session& to, Packet packet) {
  std::vector<std::string> delivered;
  std::vector<Packet> out;
  to.OnPacket({}, std::move(packet), delivered, out);
  return delivered;
}

Packet Sent(Session& from, const std::string& payload) {
  std::vector<Packet> out;
  EXPECT_TRUE(from.Send({}, payload, out).ok());
  return out.at(0);
}

TEST(Session, LaterMessageWaitsForTheEarlierOne) {
  Session a(1, kResend), b(1, kResend);
  const Packet first = Sent(a, "1"), second = Sent(a, "2");
  EXPECT_TRUE(Deliver(b, second).empty());
  EXPECT_EQ(Deliver(b, first), (std::vector<std::string>{"1", "2"}));
  EXPECT_TRUE(Deliver(b, first).empty()) << "delivered twice";
}

TEST(Session, AnotherSessionsPacketIsIgnored) {
  Session a(1, kResend), b(2, kResend);
  EXPECT_TRUE(Deliver(b, Sent(a, "1")).empty());
}

TEST(Session, ResendsLessAndLessOften) {
  Session a(1, kResend);
  Sent(a, "");
  std::vector<int> resent_at_ms;
  for (int ms = 0; ms <= 3000; ms += 10) {
    std::vector<Packet> out;
    a.Tick(TimePoint() + milliseconds(ms), out);
    if (!out.empty()) resent_at_ms.push_back(ms);
  }
  EXPECT_EQ(resent_at_ms, (std::vector<int>{100, 300, 700, 1500}));
}

TEST(Session, FullWindowIsBusyUntilAcknowledged) {
  Session a(1, kResend), b(1, kResend);
  std::vector<Packet> sent;
  while (a.Send({}, "x", sent).ok()) {
  }
  EXPECT_EQ(sent.size(), 1024u);
  std::vector<std::string> delivered;
  std::vector<Packet> acks;
  for (const Packet& packet : sent) b.OnPacket({}, packet, delivered, acks);
  Deliver(a, acks.back());
  EXPECT_TRUE(a.all_acknowledged());
  EXPECT_TRUE(a.Send({}, "x", sent).ok());
}

TEST(Session, HostileNumbersChangeNothing) {
  Session a(1, kResend), b(1, kResend);
  Sent(a, "1");
  Deliver(a, {1, 0, UINT64_MAX, ""});
  EXPECT_FALSE(a.all_acknowledged()) << "what was never sent cannot be acknowledged";
  EXPECT_TRUE(Deliver(b, {1, UINT64_MAX, 0, "x"}).empty());
  EXPECT_TRUE(Deliver(b, {1, 5000, 0, "x"}).empty()) << "beyond the window";
}

TEST(Session, WhatArrivesEarlyIsBoundedInBytesAndComesAgain) {
  Session a(1, kResend), b(1, kResend);
  std::vector<Packet> sent;
  for (char c = 'a'; c < 'a' + 20; ++c) sent.push_back(Sent(a, std::string(8 << 20, c)));
  for (size_t i = 19; i > 0; --i) EXPECT_TRUE(Deliver(b, sent[i]).empty());
  EXPECT_LE(b.held_bytes(), 64u << 20);
  std::string order;
  for (const Packet& packet : sent) {
    for (const std::string& payload : Deliver(b, packet)) order += payload[0];
  }
  EXPECT_EQ(order, "abcdefghijklmnopqrst");
  EXPECT_EQ(b.held_bytes(), 0u);
  EXPECT_EQ(a.held_bytes(), 20u * (8 << 20));
  Deliver(a, {1, 0, 20, ""});
  EXPECT_EQ(a.held_bytes(), 0u);
}

TEST(Session, DatagramIsDeliveredAtOnceAndAnswered) {
  Session a(1, kResend), b(1, kResend);
  std::vector<std::string> delivered;
  std::vector<Packet> out;
  b.OnPacket({}, a.Datagram("beat"), delivered, out);
  EXPECT_EQ(delivered, std::vector<std::string>{"beat"});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_TRUE(out[0].payload.empty());
  EXPECT_TRUE(a.all_acknowledged());
}

}  // namespace
}  // namespace dt
