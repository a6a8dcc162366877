// Goal: a peer that cannot be served through shared memory is served by the network below, without
// loss of a message, and a peer that only occupies connections delays nobody. Method: real sockets
// of one process. A server that refuses is a Unix socket beside one that listens on TCP only; a
// silent peer is a Unix socket that the test does not use; another process is a socket that a child
// connected; running out of descriptors is a limit of this process.
#include <array>
#include <cstring>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "common/net/shm/shm_arena.h"
#include "common/net/shm/shm_network.h"
#include "common/net/shm/shm_rendezvous.h"
#include "common/net/shm/shm_segment.h"

namespace dt {
namespace {

constexpr Duration kLimitsTimeout = seconds(20);

Frames MessageOfBytes(size_t bytes, int text) {
  Frames frames;
  frames.push_back(Frame::Of(bytes));
  std::ranges::fill(frames.back().bytes(), static_cast<std::byte>(text));
  return frames;
}
bool Is(const Frames& frames, size_t bytes, int text) {
  return frames.size() == 1 && frames[0].size() == bytes &&
         std::ranges::all_of(std::as_const(frames[0]).bytes(),
                             [&](std::byte b) { return b == static_cast<std::byte>(text); });
}

// Limits the number of descriptors of this process.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t limit) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit now{std::min(limit, before_.rlim_max), before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
  }
  ~DescriptorLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

Duration CpuOfThisThread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return seconds(time.tv_sec) + Duration(time.tv_nsec);
}

// Two connections that seem to come from another process: a child makes them and ends.
std::array<OwnedFd, 2> ConnectAsAnother(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  std::array<OwnedFd, 2> sockets;
  for (OwnedFd& fd : sockets) fd = OwnedFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const pid_t child = fork();
  if (child == 0) {
    bool all = true;
    for (const OwnedFd& fd : sockets) {
      all = all && connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0;
    }
    _exit(all ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return sockets;
}

// A peer that asks once, and never gives back the memory of the answers.
class Hoarder {
 public:
  explicit Hoarder(OwnedFd socket) : socket_(std::move(socket)) {
    const OwnedFd arena = *(*ShmArena::Create())->ReadOnlyFd();
    EXPECT_TRUE(SendShmHello(socket_.get(), std::array{segment_.fd().get(), arena.get()}).ok());
    const ShmRecordHead head{sizeof(ShmRecordHead) + sizeof(ShmPartHead), 1};
    const ShmPartHead part;
    std::memcpy(shared().to_server.bytes, &head, sizeof(head));
    std::memcpy(shared().to_server.bytes + sizeof(head), &part, sizeof(part));
    shared().to_server.tail.store(head.bytes);
  }
  // The number of answers, each with one large part.
  size_t answers() { return shared().to_client.tail.load() / kAnswer; }

 private:
  static constexpr size_t kAnswer = sizeof(ShmRecordHead) + sizeof(ShmPartHead);
  ShmSegment& shared() { return *reinterpret_cast<ShmSegment*>(segment_.data()); }

  OwnedFd socket_;
  SharedMemory segment_ =
      *SharedMemory::Create("segment", sizeof(ShmSegment), SharedMemory::Access::kReadWrite);
};

class ShmLimits : public ::testing::Test {
 protected:
  OwnedFd SilentClient() {
    Result<OwnedFd> connected = ConnectShm(ShmNamesOf(server_->endpoint())[0]);
    // While the queue of connections is full.
    for (int i = 0; i < 1000 && !connected.ok(); ++i) {
      server_->Receive(milliseconds(1)).IgnoreError();
      connected = ConnectShm(ShmNamesOf(server_->endpoint())[0]);
    }
    return *std::move(connected);
  }
  // Sends a message to the server and back.
  void Exchange(ClientSocket& client, int text) {
    ASSERT_TRUE(client.Send(MessageOfBytes(9000, text)).ok());
    auto got = server_->Receive(kLimitsTimeout);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(Is(got->frames, 9000, text));
    ASSERT_TRUE(server_->Send(got->peer, std::move(got->frames)).ok());
    auto back = client.Receive(kLimitsTimeout);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(Is(*back, 9000, text));
  }

  const DescriptorLimit many_{8192};
  const std::unique_ptr<Network> below_ = MakeZmqNetwork({.insecure = true});
  const std::unique_ptr<Network> network_ = MakeShmNetwork(*below_);
  std::unique_ptr<ServerSocket> server_ = *network_->Bind("tcp://127.0.0.1:0");
};

// The server closes the connection, or never answers.
TEST_F(ShmLimits, AServerThatRefusesGetsTheSameMessagesBelow) {
  for (const bool closes : {true, false}) {
    server_ = *below_->Bind("tcp://127.0.0.1:0");
    const OwnedFd listener = *ListenForShm(server_->endpoint());
    const auto client = *network_->Connect(server_->endpoint());
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(client->Send(MessageOfBytes(9000, i)).ok());
    OwnedFd accepted = *AcceptShm(listener);
    ASSERT_TRUE(accepted.valid());
    if (closes) accepted = OwnedFd();
    EXPECT_FALSE(client->Receive(closes ? milliseconds(200) : milliseconds(2500)).ok());
    for (int i = 0; i < 3; ++i) {
      const auto got = server_->Receive(kLimitsTimeout);
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_TRUE(Is(got->frames, 9000, i));
    }
    Exchange(*client, 7);
    EXPECT_FALSE(AcceptShm(listener)->valid()) << "it tried again at once";
  }
}

TEST_F(ShmLimits, ThoseWhoSayNothingHoldNobodyUp) {
  std::vector<OwnedFd> silent;
  for (int i = 0; i < 1500; ++i) {
    silent.push_back(SilentClient());
    if (i % 100 == 99) server_->Receive(milliseconds(1)).IgnoreError();
    while (i % 100 == 99 && server_->Receive(Duration::zero()).ok()) {
    }
  }
  const auto client = *network_->Connect(server_->endpoint());
  Exchange(*client, 1);
  EXPECT_EQ(below_->bytes_received(), 0u) << "it had to go below";
}

TEST_F(ShmLimits, MoreThanThereIsPlaceForAreServedBelow) {
  std::jthread echo([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      auto got = server_->Receive(milliseconds(20));
      if (got.ok()) server_->Send(got->peer, std::move(got->frames)).IgnoreError();
    }
  });
  std::vector<std::unique_ptr<ClientSocket>> clients;
  const auto ask = [&](size_t i) {
    ASSERT_TRUE(clients[i]->Send(MessageOfBytes(9000, static_cast<int>(i % 100))).ok());
    const auto back = clients[i]->Receive(kLimitsTimeout);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(Is(*back, 9000, static_cast<int>(i % 100)));
  };
  for (size_t i = 0; i < 270; ++i) {
    clients.push_back(*network_->Connect(server_->endpoint()));
    ask(i);
  }
  const uint64_t there_and_back = 2u * 14u * 9000u;
#ifdef __SANITIZE_THREAD__
  // It leaves less room for mappings, of which each connection has one of 16 GiB.
  EXPECT_GE(below_->bytes_received(), there_and_back);
#else
  EXPECT_EQ(below_->bytes_received(), there_and_back);
#endif
  for (size_t i = 0; i < 270; ++i) ask(i);
}

TEST_F(ShmLimits, WithoutDescriptorsAServerWaitsInsteadOfTurning) {
  const OwnedFd waiting = SilentClient();
  {
    const OwnedFd next(dup(waiting.get()));
    const DescriptorLimit none(static_cast<rlim_t>(next.get()));
    const Duration before = CpuOfThisThread();
    EXPECT_FALSE(server_->Receive(milliseconds(500)).ok());
    EXPECT_LT(CpuOfThisThread() - before, milliseconds(100));
  }
  const auto client = *network_->Connect(server_->endpoint());
  Exchange(*client, 1);
}

TEST_F(ShmLimits, AProcessThatGivesNothingBackKeepsNoMemoryFromOthers) {
  const std::unique_ptr<Network> strict = MakeShmNetwork(*below_, 1'000'000);
  server_ = *strict->Bind("tcp://127.0.0.1:0");
  auto sockets = ConnectAsAnother(ShmNamesOf(server_->endpoint())[0]);
  std::optional<Hoarder> one(std::move(sockets[0])), two(std::move(sockets[1]));
  const auto ids =
      std::array{server_->Receive(kLimitsTimeout)->peer, server_->Receive(kLimitsTimeout)->peer};
  const auto answer = [&] {
    for (size_t i = 0; i < 40; ++i) {
      ASSERT_TRUE(server_->Send(ids[i % 2], MessageOfBytes(100'000, 1)).ok());
    }
  };
  answer();
  EXPECT_EQ(one->answers(), 5u);
  EXPECT_EQ(two->answers(), 5u);
  const auto client = *strict->Connect(server_->endpoint());
  Exchange(*client, 1);
  EXPECT_EQ(below_->bytes_received(), 0u) << "it had to go below";

  one.reset();  // The memory that it held is free again, and the other connection may use it.
  for (int i = 2; i < 5; ++i) Exchange(*client, i);
  EXPECT_FALSE(server_->Receive(milliseconds(10)).ok());
  answer();
  EXPECT_EQ(two->answers(), 10u);
  server_.reset();  // Before its network.
}

}  // namespace
}  // namespace dt
