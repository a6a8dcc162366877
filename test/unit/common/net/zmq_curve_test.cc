// Goal: without an allowed key no message gets through, and no stranger can crash the process.
// Method: real sockets on loopback; strangers without a key, with another key, with a wrong key for
// the job, and with arbitrary bytes.
#include <arpa/inet.h>

#include <gtest/gtest.h>

#include "common/net/socket.h"
#include "test/support/raw_zmtp.h"

namespace dt {
namespace {

using test::RawZmtp;

constexpr Duration kCurveTimeout = seconds(20);
// Time in which a refused message could have arrived.
constexpr Duration kSilence = milliseconds(300);

Frames OneFrame(size_t size) {
  Frames frames;
  frames.push_back(Frame::Of(size));
  for (std::byte& b : frames[0].bytes()) b = std::byte{7};
  return frames;
}

class CurveTest : public ::testing::Test {
 protected:
  // A process that has the keys `own` and knows the job's public key.
  std::unique_ptr<Network> Stranger(const KeyPair& own) {
    return MakeZmqNetwork({.curve = CurveOptions{{job_.public_key, ""}, own, {}}});
  }
  bool Arrives(Network& from) {
    auto client = from.Connect(server_->endpoint());
    EXPECT_TRUE(client.ok()) << client.status();
    EXPECT_TRUE((*client)->Send(OneFrame(100)).ok());
    return server_->Receive(kSilence).ok();
  }

  const KeyPair job_ = MakeKeyPair();
  const KeyPair friend_ = MakeKeyPair();
  const std::unique_ptr<Network> network_ =
      MakeZmqNetwork({.curve = CurveOptions{job_, job_, {friend_.public_key}}});
  const std::unique_ptr<ServerSocket> server_ = *network_->Bind("tcp://127.0.0.1:0");
};

TEST_F(CurveTest, TheJobsKeyAndAllowedOnesGetIn) {
  EXPECT_TRUE(Arrives(*network_));
  EXPECT_TRUE(Arrives(*Stranger(friend_)));
}

TEST_F(CurveTest, NobodyElseDoes) {
  EXPECT_FALSE(Arrives(*Stranger(MakeKeyPair()))) << "a key that is not allowed";
  EXPECT_FALSE(Arrives(*MakeZmqNetwork({.insecure = true}))) << "no key";
  const KeyPair other = MakeKeyPair();
  EXPECT_FALSE(Arrives(*MakeZmqNetwork({.curve = CurveOptions{other, job_, {}}})))
      << "the job's own key, but another idea of whom it speaks to";
  EXPECT_TRUE(Arrives(*network_)) << "the others have not disturbed it";
}

// A client trusts no server without the job's secret key, even at the job's address.
TEST_F(CurveTest, AnImpostorIsNotAnswered) {
  const KeyPair other = MakeKeyPair();
  const auto impostor = MakeZmqNetwork({.curve = CurveOptions{other, other, {job_.public_key}}});
  const auto server = *impostor->Bind("tcp://127.0.0.1:0");
  auto client = *network_->Connect(server->endpoint());
  ASSERT_TRUE(client->Send(OneFrame(100)).ok());
  EXPECT_FALSE(server->Receive(kSilence).ok());
}

TEST_F(CurveTest, WithoutKeysNothingIsOpenedButInOneProcess) {
  const auto none = MakeZmqNetwork({});
  for (const auto& status :
       {none->Bind("tcp://127.0.0.1:0").status(), none->Connect("tcp://127.0.0.1:9").status()}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(ToText(status).find("security.curve.key"), std::string::npos) << ToText(status);
  }
  EXPECT_TRUE(none->Bind("inproc://x").ok());
  // A process that may only connect has no secret key to listen with.
  EXPECT_FALSE(Stranger(friend_)->Bind("tcp://127.0.0.1:0").ok());
}

TEST_F(CurveTest, ServesAllAddressesUnderKeys) {
  EXPECT_TRUE(network_->Bind("tcp://0.0.0.0:0").ok());
}

TEST(KeyPairs, AreMadeAndChecked) {
  const KeyPair a = MakeKeyPair(), b = MakeKeyPair();
  EXPECT_NE(a.secret_key, b.secret_key);
  EXPECT_EQ(PublicKeyOf(a.secret_key), a.public_key);
  EXPECT_TRUE(IsKey(a.public_key));
  EXPECT_FALSE(IsKey(a.public_key.substr(1)));
  EXPECT_FALSE(IsKey(a.public_key + "x"));
  EXPECT_FALSE(IsKey(std::string(40, '"')));  // '"' is not a character of Z85.
}

// ZeroMQ takes its peers' numbers from rand(). Without a seed the first number is 6b8b4567, and
// after a peer has used that name the next connection aborts the process.
TEST(PeerNumbers, CannotBeForeseen) {
  const auto network = MakeZmqNetwork({.insecure = true});
  const auto server = *network->Bind("tcp://127.0.0.1:0");
  std::vector<RawZmtp> strangers;
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t number = htonl(0x6b8b4567 + i);
    std::string name(1, '\0');
    name.append(reinterpret_cast<const char*>(&number), sizeof(number));
    ASSERT_TRUE(strangers.emplace_back(server->endpoint()).OpenPlain(name));
    ASSERT_TRUE(strangers.back().Put(std::string("\0\x01x", 3)));
    ASSERT_TRUE(server->Receive(kCurveTimeout).ok());
  }
  for (int i = 0; i < 8; ++i) {
    auto client = *network->Connect(server->endpoint());
    ASSERT_TRUE(client->Send(OneFrame(8)).ok());
    EXPECT_TRUE(server->Receive(kCurveTimeout).ok());
  }
}

}  // namespace
}  // namespace dt
