// Goal: shared memory is chosen automatically, survives the end of the other side, and never lets a
// hostile peer stop or delay a server. Method: real sockets of one process; a hostile peer is a
// segment, an arena and a Unix socket that the test fills with any content. A killed process is
// imitated by closing its socket without notice, as the kernel does; test/e2e kills real processes.
#include "common/net/shm/shm_network.h"

#include <array>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <random>
#include <sys/mman.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "common/net/shm/shm_arena.h"
#include "common/net/shm/shm_rendezvous.h"
#include "common/net/shm/shm_segment.h"

namespace dt {
namespace {

constexpr Duration kTimeout = seconds(20);

Frames MessageOf(std::initializer_list<size_t> sizes, uint64_t seed) {
  std::mt19937_64 random(seed);
  Frames frames;
  for (const size_t size : sizes) {
    frames.push_back(Frame::Of(size));
    for (std::byte& b : frames.back().bytes()) b = static_cast<std::byte>(random());
  }
  return frames;
}

bool Equal(const Frames& a, const Frames& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto x = a[i].bytes(), y = b[i].bytes();
    if (x.size() != y.size() || (!x.empty() && std::memcmp(x.data(), y.data(), x.size()) != 0)) {
      return false;
    }
  }
  return true;
}

class ShmNetworkTest : public ::testing::Test {
 protected:
  std::unique_ptr<ServerSocket> Bind(const std::string& endpoint = "tcp://127.0.0.1:0") {
    auto server = network_->Bind(endpoint);
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }
  std::unique_ptr<ClientSocket> Connect(const ServerSocket& server) {
    return *network_->Connect(server.endpoint());
  }
  // Sends one message to the server and back.
  static void Exchange(ServerSocket& server, ClientSocket& client, uint64_t seed) {
    const Frames sent = MessageOf({100, 50'000, 8}, seed);
    ASSERT_TRUE(client.Send(sent).ok());
    auto got = server.Receive(kTimeout);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(Equal(got->frames, sent));
    ASSERT_TRUE(server.Send(got->peer, std::move(got->frames)).ok());
    auto back = client.Receive(kTimeout);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(Equal(*back, sent));
  }

  const std::unique_ptr<Network> below_ = MakeZmqNetwork({.insecure = true});
  const std::unique_ptr<Network> network_ = MakeShmNetwork(*below_);
};

TEST_F(ShmNetworkTest, IsChosenByItselfAndLeavesTcpToOthers) {
  auto server = Bind();
  auto near = Connect(*server);
  Exchange(*server, *near, 1);
  EXPECT_EQ(below_->bytes_received(), 0u);
  EXPECT_EQ(network_->bytes_received(), 2u * 50'108u);
  auto other = *below_->Connect(server->endpoint());
  Exchange(*server, *other, 2);
  EXPECT_EQ(below_->bytes_received(), 2u * 50'108u);
  EXPECT_EQ(server->bytes_received(), 2u * 50'108u);
  Exchange(*server, *near, 3);
}

TEST_F(ShmNetworkTest, CarriesManyMessagesOfManyClientsAtOnce) {
  constexpr int kClients = 3, kMessages = 300;
  auto server = Bind();
  std::jthread echo([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      auto got = server->Receive(milliseconds(20));
      if (!got.ok()) continue;
      EXPECT_TRUE(server->Send(got->peer, std::move(got->frames)).ok());
    }
  });
  std::vector<std::jthread> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&, c] {
      auto client = Connect(*server);
      std::mt19937_64 random(c);
      for (int i = 0; i < kMessages; ++i) {
        const Frames sent = MessageOf({random() % 5000, random() % 200'000, random() % 9000}, i);
        ASSERT_TRUE(client->Send(sent).ok());
        auto back = client->Receive(kTimeout);
        ASSERT_TRUE(back.ok()) << back.status();
        ASSERT_TRUE(Equal(*back, sent));
      }
    });
  }
}

TEST_F(ShmNetworkTest, CarriesBytesOfOtherMemory) {
  auto server = Bind();
  auto client = Connect(*server);
  auto bytes = std::make_shared<std::vector<uint64_t>>(20'000, 7);
  for (int i = 0; i < 3; ++i) {
    Frames sent = MessageOf({16}, i);
    sent.push_back(Frame::Of(std::as_writable_bytes(std::span(*bytes)), bytes));
    ASSERT_TRUE(client->Send(sent).ok());
    auto got = server->Receive(kTimeout);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(Equal(got->frames, sent));
  }
}

TEST_F(ShmNetworkTest, FullMeansBusyAndNothingIsLost) {
  auto server = Bind();
  auto client = Connect(*server);
  Exchange(*server, *client, 3);  // A client that is not greeted goes below after two seconds.
  uint64_t sent = 0;
  Status status;
  for (; status.ok() && sent < 1'000'000; ++sent) status = client->Send(MessageOf({8, 5000}, sent));
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
  for (uint64_t i = 0; i + 1 < sent; ++i) {
    auto got = server->Receive(kTimeout);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(Equal(got->frames, MessageOf({8, 5000}, i)));
  }
  Exchange(*server, *client, 4);
}

TEST_F(ShmNetworkTest, WhatWasReceivedStaysThoughItsSenderGoesOn) {
  auto server = Bind();
  auto client = Connect(*server);
  std::vector<Frames> held;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(client->Send(MessageOf({16, 100'000}, i)).ok());
    held.push_back(server->Receive(kTimeout)->frames);
  }
  client.reset();
  auto next = Connect(*server);
  for (int i = 20; i < 60; ++i) {
    ASSERT_TRUE(next->Send(MessageOf({16, 100'000}, i)).ok());
    ASSERT_TRUE(server->Receive(kTimeout).ok());
  }
  server.reset();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Equal(held[i], MessageOf({16, 100'000}, i)));
}

TEST_F(ShmNetworkTest, ClientReachesTheServerThatStartsAgain) {
  auto first = Bind();
  const std::string endpoint = first->endpoint();
  auto client = Connect(*first);
  Exchange(*first, *client, 5);
  first.reset();
  std::unique_ptr<ServerSocket> second;
  const TimePoint deadline = SystemClock().Now() + kTimeout;
  while (second == nullptr && SystemClock().Now() < deadline) {
    auto again = network_->Bind(endpoint);
    if (again.ok()) second = *std::move(again);
  }
  ASSERT_NE(second, nullptr);
  while (SystemClock().Now() < deadline) {  // The message may take either network.
    ASSERT_TRUE(client->Send(MessageOf({8}, 6)).ok());
    if (second->Receive(milliseconds(50)).ok()) return;
  }
  FAIL() << "nothing arrived at the second server";
}

// ------------------------------------------------------------ hostile peers

// A memfd made by the test.
class RawMemory {
 public:
  explicit RawMemory(size_t bytes, bool sealed = true, unsigned flags = 0)
      : fd_(memfd_create("raw", kFlags | flags)) {
    EXPECT_EQ(ftruncate(fd_.get(), static_cast<off_t>(bytes)), 0);
    const int seals = sealed ? F_SEAL_SHRINK | F_SEAL_GROW : 0;
    EXPECT_EQ(fcntl(fd_.get(), F_ADD_SEALS, seals), 0);
  }
  int fd() const { return fd_.get(); }

 private:
  static constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  OwnedFd fd_;
};

// A client that can send anything.
class RawClient {
 public:
  explicit RawClient(const std::string& endpoint)
      : socket_(*ConnectShm(ShmNamesOf(endpoint)[0])),
        segment_(
            *SharedMemory::Create("segment", sizeof(ShmSegment), SharedMemory::Access::kReadWrite)),
        arena_(kArenaBytes) {}

  void Greet() { Greet(std::array{segment_.fd().get(), arena_.fd()}); }
  void Greet(std::span<const int> fds) { EXPECT_TRUE(SendShmHello(socket_.get(), fds).ok()); }
  int segment_fd() const { return segment_.fd().get(); }
  void Say(const std::string& bytes) {
    EXPECT_GT(send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
  }
  // The server's arena, once the server has accepted the greeting.
  OwnedFd Arena() {
    auto hello = TakeShmHello(socket_.get());
    const bool there = hello.ok() && hello->has_value() && (*hello)->fds.size() == 1;
    EXPECT_TRUE(there);
    return there ? std::move((*hello)->fds[0]) : OwnedFd();
  }
  ShmRing& ring() { return reinterpret_cast<ShmSegment*>(segment_.data())->to_server; }
  // Writes a record of one part without any check.
  void Write(ShmRecordHead head, ShmPartHead part) {
    std::memcpy(ring().bytes, &head, sizeof(head));
    std::memcpy(ring().bytes + sizeof(head), &part, sizeof(part));
    ring().tail.store(sizeof(head) + sizeof(part));
  }

 private:
  OwnedFd socket_;
  SharedMemory segment_;
  RawMemory arena_;
};

class HostileTest : public ShmNetworkTest {
 protected:
  HostileTest() : server_(Bind()), good_(Connect(*server_)) {}
  // Checks that the server survives, accepts nothing from the hostile client, and still serves the
  // good one.
  void ExpectRefused(const std::string& what, const std::function<void(RawClient&)>& act) {
    SCOPED_TRACE(what);
    RawClient hostile(server_->endpoint());
    act(hostile);
    EXPECT_FALSE(server_->Receive(milliseconds(5)).ok());
    Exchange(*server_, *good_, ++seed_);
  }
  static constexpr uint32_t kOnePart = sizeof(ShmRecordHead) + sizeof(ShmPartHead);

  const std::unique_ptr<ServerSocket> server_;
  const std::unique_ptr<ClientSocket> good_;
  uint64_t seed_ = 100;
};

TEST_F(HostileTest, GreetingsThatAreNoneAreRefused) {
  ExpectRefused("silence", [](RawClient&) {});
  ExpectRefused("bytes", [](RawClient& c) { c.Say("GET / HTTP/1.1\r\n\r\n"); });
  ExpectRefused("many bytes", [](RawClient& c) { c.Say(std::string(5000, 'd')); });
  ExpectRefused("no memory", [](RawClient& c) { c.Say(std::string("dovetail shm 1\n\0", 16)); });
  const RawMemory segment(sizeof(ShmSegment)), small(4096), arena(kArenaBytes),
      open(sizeof(ShmSegment), false);
  ExpectRefused("one memory", [&](RawClient& c) { c.Greet(std::array{segment.fd()}); });
  ExpectRefused("small segment", [&](RawClient& c) {
    c.Greet(std::array{small.fd(), arena.fd()});
  });
  ExpectRefused("small arena", [&](RawClient& c) {
    c.Greet(std::array{segment.fd(), small.fd()});
  });
  // The owner could truncate it under a reader, which SIGBUS would kill.
  ExpectRefused("unsealed", [&](RawClient& c) { c.Greet(std::array{open.fd(), arena.fd()}); });
  ExpectRefused("a socket", [&](RawClient& c) { c.Greet(std::array{0, 1}); });
}

// Touching such memory kills the process if the system has no free huge page.
TEST_F(HostileTest, MemoryOfHugePagesIsRefused) {
  const OwnedFd probe(memfd_create("probe", MFD_HUGETLB));
  if (!probe.valid()) GTEST_SKIP() << "this system has no huge pages";
  const RawMemory arena(kArenaBytes, true, MFD_HUGETLB);
  ExpectRefused("huge pages", [&](RawClient& c) {
    c.Greet(std::array{c.segment_fd(), arena.fd()});
    c.Write({kOnePart, 1}, {5000, 0});
  });
}

TEST_F(HostileTest, NobodyElseWritesToTheArena) {
  RawClient hostile(server_->endpoint());
  hostile.Greet();
  Exchange(*server_, *good_, ++seed_);
  const OwnedFd arena = hostile.Arena();
  ASSERT_TRUE(arena.valid());
  void* const read = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, arena.get(), 0);
  ASSERT_NE(read, MAP_FAILED);
  EXPECT_NE(mprotect(read, 4096, PROT_READ | PROT_WRITE), 0);
  munmap(read, 4096);
  const OwnedFd again(open(fmt::format("/proc/self/fd/{}", arena.get()).c_str(), O_RDWR));
  if (!again.valid()) return;
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again.get(), 0), MAP_FAILED);
  EXPECT_LT(pwrite(again.get(), "x", 1, 0), 0);
  EXPECT_NE(fallocate(again.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
}

TEST_F(HostileTest, RecordsThatBreakTheRulesAreRefused) {
  const auto with = [this](const std::string& what, ShmRecordHead head, ShmPartHead part) {
    ExpectRefused(what, [&](RawClient& c) {
      c.Greet();
      c.Write(head, part);
    });
  };
  with("no bytes", {0, 1}, {8});
  with("odd bytes", {kOnePart + 1, 1}, {8});
  with("more than there is", {4096, 1}, {8});
  with("no parts", {kOnePart, 0}, {8});
  with("many parts", {kOnePart, 1'000'000}, {8});
  with("parts beyond the record", {kOnePart, 2}, {8});
  with("bytes beyond the record", {kOnePart, 1}, {8});
  with("a size that wraps", {kOnePart, 1}, {~uint64_t{0} - 3});
  with("outside the arena", {kOnePart, 1}, {5000, kArenaBytes - 4096});
  with("far outside", {kOnePart, 1}, {5000, ~uint64_t{0} - 7});
  with("an offset that wraps", {kOnePart, 1}, {~uint64_t{0} - 4096, 4104});
  with("beyond all sizes", {kOnePart, 1}, {(uint64_t{1} << 30) + 1, 0});
  with("an odd offset", {kOnePart, 1}, {5000, 4});
  with("no such slot", {kOnePart, 1}, {5000, 0, kShmSlots});
  for (const uint64_t tail : {uint64_t{4}, uint64_t{kShmRingBytes + 8}, ~uint64_t{0}}) {
    ExpectRefused("tail " + std::to_string(tail), [&](RawClient& c) {
      c.Greet();
      c.ring().tail.store(tail);
    });
  }
}

TEST_F(HostileTest, RandomBytesNeverHurt) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 100; ++round) {
    RawClient hostile(server_->endpoint());
    hostile.Greet();
    for (size_t i = 0; i < 4096; ++i) {
      const bool zero = random() % 4 != 0;
      hostile.ring().bytes[i] = zero ? std::byte{} : static_cast<std::byte>(random());
    }
    const ShmRecordHead head{static_cast<uint32_t>(8 * (random() % 64)),
                             static_cast<uint32_t>(random() % 4)};
    std::memcpy(hostile.ring().bytes, &head, sizeof(head));
    hostile.ring().tail.store(random() % 2 == 0 ? 4096 : random());
    for (int i = 0; i < 3; ++i) server_->Receive(Duration::zero()).IgnoreError();
    if (round % 10 == 0) Exchange(*server_, *good_, ++seed_);
  }
}

TEST_F(HostileTest, OneWhoRingsAllTheTimeOrReadsNothingHoldsNobodyUp) {
  RawClient loud(server_->endpoint());
  loud.Greet();
  for (int i = 0; i < 50; ++i) loud.Say(std::string(1, '!'));
  Exchange(*server_, *good_, ++seed_);
  loud.ring().closed.store(1);
  Exchange(*server_, *good_, ++seed_);
}

TEST_F(HostileTest, ADeadPeersLastMessageIsTakenAndItsPlaceFreed) {
  {
    RawClient dying(server_->endpoint());
    dying.Greet();
    dying.Write({kOnePart, 1}, {0, kShmInline});
  }  // The socket and the memory vanish without notice.
  auto last = server_->Receive(kTimeout);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_TRUE(server_->Send(last->peer, MessageOf({5000}, 1)).ok());
  for (int i = 0; i < 3; ++i) Exchange(*server_, *good_, ++seed_);
  EXPECT_TRUE(server_->Send(last->peer, MessageOf({5000}, 1)).ok());
}

}  // namespace
}  // namespace dt
