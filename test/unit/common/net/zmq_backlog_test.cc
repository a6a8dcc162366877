// Goal: data that a peer sends and nobody can receive is bounded, and a peer whose messages are
// read is never disconnected. Method: real sockets on loopback; a peer that never sends the last
// part of its message, one that never finishes its handshake, and honest peers with a small bound
// and much to send.
#include <algorithm>

#include <gtest/gtest.h>

#include "common/net/socket.h"
#include "test/support/raw_zmtp.h"

namespace dt {
namespace {

using test::RawZmtp;

constexpr Duration kBacklogTimeout = seconds(20);
constexpr uint64_t kWaitingMax = 4 << 20;
constexpr uint64_t kSmall = 64 << 10;
constexpr size_t kPiece = 64 << 10;

// Sends pieces for five seconds, at most about 64 MiB; returns how much the other side accepted.
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
  return client->Send(Parts(1, 8)).ok() && server.Receive(kBacklogTimeout).ok();
}

TEST(Backlog, AMessageWithoutAnEndIsCutOff) {
  const auto network = MakeZmqNetwork({.insecure = true, .waiting_bytes_max = kWaitingMax});
  const auto server = *network->Bind("tcp://127.0.0.1:0");
  const RawZmtp peer(server->endpoint());
  ASSERT_TRUE(peer.OpenPlain("endless"));
  // Header of a part of 64 KiB with the flag "more parts follow".
  std::string part("\x03\0\0\0\0\0\x01\0\0", 9);
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
  // Header of a command of 1008 MiB.
  ASSERT_TRUE(peer.Put(std::string("\x06\0\0\0\0\x3f\0\0\0", 9)));
  EXPECT_LT(SentBeforeTheEnd(peer, std::string(kPiece, 'x')), 64u << 20);
  EXPECT_TRUE(Arrives(*network, *server));
}

// Received bytes are counted exactly: an error of one byte in each part would exceed the bound in
// the end.
void SendMuch(const ZmqOptions& options) {
  const auto network = MakeZmqNetwork(options);
  const auto server = *network->Bind("tcp://127.0.0.1:0");
  const auto client = *network->Connect(server->endpoint());
  PeerId peer;
  for (const size_t bytes : {3, 222, 223, 1000}) {
    for (int round = 0; round < 2500; ++round) {
      ASSERT_TRUE(client->Send(Parts(16, bytes)).ok());
      auto message = server->Receive(kBacklogTimeout);
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
