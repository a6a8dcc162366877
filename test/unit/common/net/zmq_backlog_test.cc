// Goal: what a peer sends and nobody can take is bounded, and a peer that is read is never cut off.
// Method: real sockets on loopback; a peer that never sends the last part of its message, one that
// never ends its handshake, and honest ones with a small bound and much to say.
#include <algorithm>

#include <gtest/gtest.h>

#include "common/net/socket.h"
#include "test/support/raw_zmtp.h"

namespace dt {
namespace {

using test::RawZmtp;

constexpr Duration kTimeout = seconds(20);
constexpr uint64_t kWaitingMax = 4 << 20;
constexpr uint64_t kSmall = 64 << 10;
constexpr size_t kPiece = 64 << 10;

// Sends pieces for five seconds, about 64 MiB in each; returns how much the other side let pass.
size_t SentBeforeTheEnd(const RawZmtp& peer, const std::string& piece) {
  const TimePoint end = SystemClock().Now() + seconds(5);
  size_t sent = 0;
  while (SystemClock().Now() < end && peer.Put(piece)) {
    sent += piece.size();
    peer.WaitForEnd(milliseconds(1));
  }
  return sent;
}

Frames Parts(size_t count, size_t bytes) {
  Frames frames;
  for (size_t i = 0; i < count; ++i) frames.push_back(Frame::Of(bytes));
  for (Frame& frame : frames) std::ranges::fill(frame.bytes(), std::byte{7});
  return frames;
}

bool Arrives(Network& network, ServerSocket& server) {
  auto client = *network.Connect(server.endpoint());
  return client->Send(Parts(1, 8)).ok() && server.Receive(kTimeout).ok();
}

TEST(Backlog, AMessageWithoutAnEndIsCutOff) {
  const auto network = MakeZmqNetwork({.insecure = true, .waiting_bytes_max = kWaitingMax});
  const auto server = *network->Bind("tcp://127.0.0.1:0");
  const RawZmtp peer(server->endpoint());
  ASSERT_TRUE(peer.OpenPlain("endless"));
  std::string part("\x03\0\0\0\0\0\x01\0\0", 9);  // "More follows", and 64 KiB.
  part.resize(part.size() + kPiece, 'x');
  EXPECT_LT(SentBeforeTheEnd(peer, part), 64u << 20);
  EXPECT_TRUE(Arrives(*network, *server));
}

TEST(Backlog, AHandshakeWithoutAnEndIsCutOff) {
  const KeyPair job = MakeKeyPair();
  const auto network = MakeZmqNetwork({.curve = CurveOptions{job, job, {}}});
  const auto server = *network->Bind("tcp://127.0.0.1:0");
  const RawZmtp peer(server->endpoint());
  ASSERT_TRUE(peer.Greet("CURVE"));
  ASSERT_TRUE(peer.Put(std::string("\x06\0\0\0\0\x3f\0\0\0", 9)));  // A command of 1008 MiB.
  EXPECT_LT(SentBeforeTheEnd(peer, std::string(kPiece, 'x')), 64u << 20);
  EXPECT_TRUE(Arrives(*network, *server));
}

// What is taken is counted to the byte: a difference of one for each part would be more than the
// bound in the end.
void SendMuch(const ZmqOptions& options) {
  const auto network = MakeZmqNetwork(options);
  const auto server = *network->Bind("tcp://127.0.0.1:0");
  const auto client = *network->Connect(server->endpoint());
  PeerId peer;
  for (const size_t bytes : {3, 222, 223, 1000}) {
    for (int round = 0; round < 2500; ++round) {
      ASSERT_TRUE(client->Send(Parts(16, bytes)).ok());
      auto message = server->Receive(kTimeout);
      ASSERT_TRUE(message.ok()) << message.status() << " " << bytes << " " << round;
      if (peer.empty()) peer = message->peer;
      ASSERT_EQ(message->peer, peer) << "it was cut off, and came again";
    }
  }
}

TEST(Backlog, WhoeverIsReadMaySendWithoutEnd) {
  SendMuch({.insecure = true, .waiting_bytes_max = kSmall});
  const KeyPair job = MakeKeyPair();
  SendMuch({.curve = CurveOptions{job, job, {}}, .waiting_bytes_max = kSmall});
}

}  // namespace
}  // namespace dt
