// Goal: all networks keep the contract of socket.h. Method: the same tests over ZeroMQ on loopback,
// ZeroMQ within one process, shared memory, and the in-memory network.
#include "common/net/socket.h"

#include <arpa/inet.h>
#include <cstring>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "common/net/memory_network.h"
#include "common/net/shm/shm_network.h"

namespace dt {
namespace {

constexpr Duration kTimeout = seconds(20);

Frames MessageOf(std::initializer_list<size_t> sizes) {
  Frames frames;
  uint8_t value = 1;
  for (const size_t size : sizes) {
    frames.push_back(Frame::Of(size));
    for (std::byte& b : frames.back().bytes()) b = static_cast<std::byte>(value += 13);
  }
  return frames;
}

bool Equal(const Frames& a, const Frames& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return false;
    if (a[i].size() != 0 && std::memcmp(a[i].bytes().data(), b[i].bytes().data(), a[i].size()) != 0)
      return false;
  }
  return true;
}

ZmqOptions Keys() {
  const KeyPair pair = MakeKeyPair();
  return {.curve = CurveOptions{pair, pair, {}}};
}

struct Kind {
  std::string name;
  std::string endpoint;
  enum Net { kZmq, kShm, kMemory } net;
};

class Sockets : public ::testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<ServerSocket> Bind(const std::string& endpoint) {
    auto server = network_->Bind(endpoint);
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }
  std::unique_ptr<ClientSocket> Connect(const std::string& endpoint) {
    auto client = network_->Connect(endpoint);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  const std::unique_ptr<Network> below_ =
      GetParam().net == Kind::kMemory ? MakeMemoryNetwork() : MakeZmqNetwork(Keys());
  const std::unique_ptr<Network> shm_ =
      GetParam().net == Kind::kShm ? MakeShmNetwork(*below_) : nullptr;
  Network* const network_ = shm_ != nullptr ? shm_.get() : below_.get();
};

TEST_P(Sockets, CarryMessagesOfAllSizesThereAndBack) {
  auto server = Bind(GetParam().endpoint);
  auto client = Connect(server->endpoint());
  for (const auto& sizes :
       {std::initializer_list<size_t>{1}, {5, 0, 8}, {100, 4096, 4104}, {64, 3 << 20, 1 << 16}}) {
    const Frames sent = MessageOf(sizes);
    ASSERT_TRUE(client->Send(sent).ok());
    auto got = server->Receive(kTimeout);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(Equal(got->frames, sent));
    for (const Frame& frame : got->frames) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(frame.bytes().data()) % 8, 0u);
    }
    ASSERT_TRUE(server->Send(got->peer, std::move(got->frames)).ok());
    auto back = client->Receive(kTimeout);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(Equal(*back, sent));
  }
  EXPECT_EQ(server->bytes_sent(), server->bytes_received());
  EXPECT_EQ(network_->bytes_sent(), 2 * server->bytes_sent());
  EXPECT_EQ(network_->bytes_received(), network_->bytes_sent());
}

TEST_P(Sockets, AnswerGoesToTheOneWhoAsked) {
  auto server = Bind(GetParam().endpoint);
  auto a = Connect(server->endpoint()), b = Connect(server->endpoint());
  ASSERT_TRUE(a->Send(MessageOf({10})).ok());
  ASSERT_TRUE(b->Send(MessageOf({20})).ok());
  for (int i = 0; i < 2; ++i) {
    auto got = server->Receive(kTimeout);
    ASSERT_TRUE(got.ok());
    ASSERT_TRUE(server->Send(got->peer, std::move(got->frames)).ok());
  }
  EXPECT_EQ((*a->Receive(kTimeout))[0].size(), 10u);
  EXPECT_EQ((*b->Receive(kTimeout))[0].size(), 20u);
  EXPECT_EQ(a->Receive(milliseconds(1)).status().code(), StatusCode::kDeadlineExceeded);
}

TEST_P(Sockets, NothingArrivesIsATimeout) {
  auto server = Bind(GetParam().endpoint);
  auto client = Connect(server->endpoint());
  EXPECT_EQ(server->Receive(Duration::zero()).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(server->Receive(milliseconds(5)).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(client->Receive(Duration::zero()).status().code(), StatusCode::kDeadlineExceeded);
}

TEST_P(Sockets, WakeEndsAWaitOnce) {
  auto server = Bind(GetParam().endpoint);
  std::jthread waker([&] { server->Wake(); });
  EXPECT_EQ(server->Receive(kTimeout).status().code(), StatusCode::kCancelled);
  waker.join();
  EXPECT_EQ(server->Receive(milliseconds(5)).status().code(), StatusCode::kDeadlineExceeded);
}

TEST_P(Sockets, ToAPeerThatHasGoneIsDropped) {
  auto server = Bind(GetParam().endpoint);
  auto client = Connect(server->endpoint());
  ASSERT_TRUE(client->Send(MessageOf({10})).ok());
  auto got = server->Receive(kTimeout);
  ASSERT_TRUE(got.ok());
  client.reset();
  EXPECT_TRUE(server->Send(got->peer, MessageOf({1})).ok());
  EXPECT_TRUE(server->Send("nobody", MessageOf({1})).ok());
}

TEST_P(Sockets, ConnectingBeforeBindingWorks) {
  const std::string endpoint =
      GetParam().net == Kind::kMemory || GetParam().endpoint.starts_with("inproc")
          ? "inproc://later"
          : "";
  // Skipped for TCP, because a free port is known only once it is bound.
  if (endpoint.empty()) return;
  auto client = Connect(endpoint);
  ASSERT_TRUE(client->Send(MessageOf({10})).ok());
  auto server = Bind(endpoint);
  EXPECT_TRUE(server->Receive(kTimeout).ok());
}

TEST_P(Sockets, AddressInUseIsNamed) {
  auto server = Bind(GetParam().endpoint);
  const auto second = network_->Bind(server->endpoint());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(ToText(second.status()).find(server->endpoint()), std::string::npos);
  EXPECT_NE(ToText(second.status()).find("in use"), std::string::npos);
}

TEST_P(Sockets, LastAnswerSurvivesTheServersEnd) {
  auto server = Bind(GetParam().endpoint);
  auto client = Connect(server->endpoint());
  ASSERT_TRUE(client->Send(MessageOf({10})).ok());
  auto got = server->Receive(kTimeout);
  ASSERT_TRUE(got.ok());
  ASSERT_TRUE(server->Send(got->peer, MessageOf({100'000})).ok());
  server.reset();
  EXPECT_TRUE(client->Receive(kTimeout).ok());
}

INSTANTIATE_TEST_SUITE_P(All, Sockets,
                         ::testing::Values(Kind{"tcp", "tcp://127.0.0.1:0", Kind::kZmq},
                                           Kind{"inproc", "inproc://x", Kind::kZmq},
                                           Kind{"shm", "tcp://127.0.0.1:0", Kind::kShm},
                                           Kind{"shm_inproc", "inproc://x", Kind::kShm},
                                           Kind{"memory", "tcp://127.0.0.1:0", Kind::kMemory}),
                         [](const auto& kind) { return kind.param.name; });

TEST(ZmqNetwork, ClientReachesAServerThatStartsLaterAndOneThatStartsAgain) {
  const auto network = MakeZmqNetwork(Keys());
  auto first = network->Bind("tcp://127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const std::string endpoint = (*first)->endpoint();
  auto client = network->Connect(endpoint);
  ASSERT_TRUE((*client)->Send(MessageOf({1})).ok());
  ASSERT_TRUE((*first)->Receive(kTimeout).ok());
  first->reset();
  std::unique_ptr<ServerSocket> second;  // The port is free once ZeroMQ's thread has closed it.
  const TimePoint deadline = SystemClock().Now() + kTimeout;
  while (second == nullptr && SystemClock().Now() < deadline) {
    auto again = network->Bind(endpoint);
    if (again.ok()) second = *std::move(again);
    (*client)->Receive(milliseconds(5)).IgnoreError();
  }
  ASSERT_NE(second, nullptr);
  while (SystemClock().Now() < deadline) {  // Messages sent into a breaking connection are lost.
    ASSERT_TRUE((*client)->Send(MessageOf({2})).ok());
    if (second->Receive(milliseconds(50)).ok()) return;
  }
  FAIL() << "nothing arrived at the second server";
}

// Sends bytes that are not ZeroMQ's, and bytes that start like ZeroMQ's greeting and then go wrong.
TEST(ZmqNetwork, SurvivesBytesOfStrangers) {
  const auto network = MakeZmqNetwork(Keys());
  auto server = network->Bind("tcp://127.0.0.1:0");
  ASSERT_TRUE(server.ok());
  const std::string endpoint = (*server)->endpoint();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port =
      htons(static_cast<uint16_t>(std::stoul(endpoint.substr(endpoint.rfind(':') + 1))));
  const std::string greeting("\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL", 16);
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(5000, '\xff'),
                                   greeting, greeting + std::string(1000, '\x05')}) {
    const int stranger = socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_GE(stranger, 0);
    ASSERT_EQ(connect(stranger, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_GT(send(stranger, bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
    EXPECT_FALSE((*server)->Receive(milliseconds(20)).ok());
    close(stranger);
  }
  auto client = network->Connect(endpoint);
  ASSERT_TRUE((*client)->Send(MessageOf({8})).ok());
  EXPECT_TRUE((*server)->Receive(kTimeout).ok());
}

}  // namespace
}  // namespace dt
