// Goal: the exchange of a step gives the same bits for any number of ranks and over any mesh, and
// if a peer is silent or the job ends, waits end with a sentence that names the reason. Method:
// slices of made-up floats are distributed over 1 to 4 ranks, each on a thread; the result on every
// rank is compared with a plain loop in slice order.
#include "worker/collective/collective.h"

#include <arpa/inet.h>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <latch>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/mutex.h"
#include "common/base/philox.h"
#include "test/unit/worker/collective/mesh_ranks.h"

namespace dt::worker {
namespace {

using Kind = MeshKind;
using Case = MeshCase;

// Runs `body` with every rank's collective on its own thread.
void OnRanks(const Case& c, const MeshLimits& limits,
             const std::function<void(Collective&)>& body) {
  OnMeshes(c, limits, [&](std::unique_ptr<Mesh> mesh) {
    Collective collective(std::move(mesh));
    body(collective);
  });
}

std::vector<float> Made(uint64_t stream, uint64_t slice, size_t n) {
  std::vector<float> values(n);
  FillNormal(stream, slice, values);
  return values;
}

// One rank's part in an exchange, filled with the slices that it owns.
struct Part {
  Part(uint32_t rank, std::span<const uint32_t> owner, size_t sum_size, size_t gather_size)
      : sums(owner.size()), gathers(owner.size()), sum(owner.size()), gather(owner.size()) {
    for (size_t k = 0; k < owner.size(); ++k) {
      if (owner[k] != rank) continue;
      sum[k] = sums[k] = Made(1, k, sum_size);
      gather[k] = gathers[k] = Made(2, k, gather_size);
    }
    summed.resize(sum_size);
    gathered.resize(owner.size() * gather_size);
  }
  std::vector<std::vector<float>> sums, gathers;
  std::vector<std::span<const float>> sum, gather;
  std::vector<float> summed, gathered;
};

class CollectiveTest : public ::testing::TestWithParam<Case> {};
class PeerTest : public ::testing::TestWithParam<Case> {};

TEST_P(CollectiveTest, ExchangeGivesTheBitsOfALoopInSliceOrder) {
  const uint32_t ranks = GetParam().ranks;
  for (const size_t sum_size : {0, 1, 100, 5003}) {
    const size_t gather_size = sum_size == 100 ? 0 : 7;
    const uint32_t slices = 5;
    std::vector<float> summed = Made(1, 0, sum_size), gathered;
    for (uint32_t k = 0; k < slices; ++k) {
      const std::vector<float> slice = Made(1, k, sum_size), gather = Made(2, k, gather_size);
      for (size_t i = 0; k > 0 && i < sum_size; ++i) summed[i] += slice[i];
      gathered.insert(gathered.end(), gather.begin(), gather.end());
    }
    std::vector<uint32_t> owner(slices);
    for (uint32_t k = 0; k < slices; ++k) owner[k] = (k * 7 + 1) % ranks;
    OnRanks(GetParam(), {}, [&](Collective& collective) {
      Part part(collective.rank(), owner, sum_size, gather_size);
      for (int repeat = 0; repeat < 3; ++repeat) {
        const Status done =
            collective.ExchangeSlices({owner, part.sum, part.gather, part.summed, part.gathered});
        ASSERT_TRUE(done.ok()) << ToText(done);
        EXPECT_TRUE(sum_size == 0 ||
                    std::memcmp(part.summed.data(), summed.data(), 4 * sum_size) == 0);
        EXPECT_EQ(part.gathered, gathered);
      }
    });
  }
}

// Two disjoint sets of ranks exchange at the same time; each member gets the sums of its own rows
// of two matrices.
TEST_P(CollectiveTest, MembersAddTheirRowsOnly) {
  const uint32_t ranks = GetParam().ranks;
  const std::vector<RowsPiece> rows = {{0, 5, 3}, {16, 2, 4}};
  constexpr size_t kFloats = 32;
  OnRanks(GetParam(), {}, [&](Collective& collective) {
    std::vector<uint32_t> members;
    for (uint32_t r = collective.rank() % 2; r < ranks; r += 2) members.push_back(r);
    std::vector<uint32_t> owner;
    for (uint32_t k = 0; k < 3; ++k) owner.push_back(members[k % members.size()]);
    Part part(collective.rank(), owner, kFloats, 2);
    for (Step step = 0; step < 3; ++step) {
      const Status done = collective.ExchangeSlices({.owner = owner,
                                                     .sum = part.sum,
                                                     .gather = part.gather,
                                                     .summed = part.summed,
                                                     .gathered = part.gathered,
                                                     .rows = rows,
                                                     .ranks = members,
                                                     .number = collective.rank() % 2,
                                                     .step = step});
      ASSERT_TRUE(done.ok()) << ToText(done);
    }
    const auto me = std::ranges::find(members, collective.rank()) - members.begin();
    for (const RowsPiece& piece : rows) {
      const size_t each = (piece.rows + members.size() - 1) / members.size();
      for (size_t row = 0; row < piece.rows; ++row) {
        for (size_t c = 0; c < piece.width; ++c) {
          const size_t at = piece.offset + row * piece.width + c;
          float sum = Made(1, 0, kFloats)[at];
          for (uint32_t k = 1; k < 3; ++k) sum += Made(1, k, kFloats)[at];
          EXPECT_EQ(part.summed[at], row / each == static_cast<size_t>(me) ? sum : 0.0f) << at;
        }
      }
    }
  });
}

// The slices have unequal sizes, some are empty, and some ranks have none; repeated with changing
// sizes.
TEST_P(CollectiveTest, EveryRankGathersTheBytesOfEverySlice) {
  const uint32_t ranks = GetParam().ranks;
  const auto made = [](uint32_t round, uint32_t k) {
    const size_t bytes = (round + k) % 3 == 0 ? 0 : (round * 7919 + k * 1013) % 5000 * k;
    const std::vector<float> floats = Made(round, k, bytes / sizeof(float));
    const std::span<const std::byte> span = std::as_bytes(std::span(floats));
    return std::vector<std::byte>(span.begin(), span.end());
  };
  for (const std::vector<uint32_t>& of : {std::vector<uint32_t>{0, 3, 1, 1, 2, 0}, {1}, {0, 0}}) {
    std::vector<uint32_t> owner = of;
    for (uint32_t& rank : owner) rank %= ranks;
    OnRanks(GetParam(), {}, [&](Collective& collective) {
      for (uint32_t round = 0; round < 5; ++round) {
        std::vector<std::vector<std::byte>> slices(owner.size());
        std::vector<std::span<const std::byte>> own(owner.size()), all(owner.size());
        for (uint32_t k = 0; k < owner.size(); ++k) {
          if (owner[k] == collective.rank()) own[k] = slices[k] = made(round, k);
        }
        const Status done = collective.GatherSlices({owner, own, all});
        ASSERT_TRUE(done.ok()) << ToText(done);
        for (uint32_t k = 0; k < owner.size(); ++k) {
          EXPECT_TRUE(std::ranges::equal(all[k], made(round, k))) << round << " " << k;
        }
      }
    });
  }
}

// An impossible size is refused by all ranks before memory is allocated for it.
TEST_P(CollectiveTest, ASliceOfImpossibleSizeIsRefused) {
  if (GetParam().ranks < 2) return;
  OnRanks(GetParam(), {}, [&](Collective& collective) {
    const std::vector<uint32_t> owner = {0, 1};
    const std::byte byte{1};
    std::vector<std::span<const std::byte>> own(2), all(2);
    if (collective.rank() == 0) own[0] = {&byte, ~uint64_t{7}};
    if (collective.rank() == 1) own[1] = {&byte, 1};
    const Status done = collective.GatherSlices({owner, own, all});
    EXPECT_EQ(done.code(), absl::StatusCode::kInternal);
    EXPECT_NE(ToText(done).find("slice 0 of rank 0 leaves"), std::string::npos) << ToText(done);
  });
}

TEST_P(CollectiveTest, NobodyPassesABarrierBeforeAllAreThere) {
  std::atomic<uint32_t> entered = 0;
  OnRanks(GetParam(), {}, [&](Collective& collective) {
    for (uint32_t round = 1; round <= 5; ++round) {
      ++entered;
      ASSERT_TRUE(collective.Barrier().ok());
      EXPECT_GE(entered.load(), round * GetParam().ranks);
    }
  });
}

TEST_P(PeerTest, ASilentPeerIsNamedWithinTheDeadline) {
  // Rank 0 waits until the others have given up.
  std::latch gave_up(GetParam().ranks - 1);
  OnRanks(GetParam(), {.timeout = seconds(1)}, [&](Collective& collective) {
    if (collective.rank() == 0) {
      gave_up.wait();
      return;
    }
    const Status status = collective.Barrier();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(ToText(status), ::testing::HasSubstr("barrier"));
    EXPECT_THAT(ToText(status), ::testing::HasSubstr("rank"));
    gave_up.count_down();
  });
}

TEST_P(PeerTest, OneThatGoesAwayBeforeItsSlicesComeIsNamedWithinTheDeadline) {
  OnRanks(GetParam(), {.timeout = seconds(1)}, [&](Collective& collective) {
    const uint32_t ranks = collective.size();
    std::vector<uint32_t> owner(ranks);
    std::iota(owner.begin(), owner.end(), 0u);
    const std::vector<std::byte> bytes(100 * (1 + collective.rank()), std::byte{7});
    std::vector<std::span<const std::byte>> own(ranks), all(ranks);
    own[collective.rank()] = bytes;
    ASSERT_TRUE(collective.GatherSlices({owner, own, all}).ok());
    if (collective.rank() == 0) return;
    const TimePoint begun = SystemClock().Now();
    const Status status = collective.GatherSlices({owner, own, all});
    // The in-memory mesh has no connection that could end, so there the peer is only silent.
    EXPECT_EQ(status.code(), GetParam().kind == Kind::kGloo ? StatusCode::kUnavailable
                                                            : StatusCode::kDeadlineExceeded);
    EXPECT_THAT(ToText(status), ::testing::HasSubstr("all-gather"));
    EXPECT_THAT(ToText(status), ::testing::HasSubstr("rank"));
    EXPECT_TRUE(collective.broken());
    EXPECT_LT(SecondsBetween(begun, SystemClock().Now()), 10);
  });
}

TEST_P(PeerTest, TheEndOfTheJobEndsAWaitAtOnce) {
  std::atomic<bool> ended = false;
  std::latch gave_up(GetParam().ranks - 1);
  const MeshLimits limits = {.timeout = seconds(60), .interrupted = [&] {
                               return ended ? Cancelled("the job was stopped") : OkStatus();
                             }};
  const TimePoint begun = SystemClock().Now();
  OnRanks(GetParam(), limits, [&](Collective& collective) {
    if (collective.rank() == 0) {
      ended = true;
      gave_up.wait();
      return;
    }
    const Status status = collective.Barrier();
    EXPECT_EQ(ToText(status), "the job was stopped");
    gave_up.count_down();
  });
  EXPECT_LT(SecondsBetween(begun, SystemClock().Now()), 20);
}

// The ports on which this process listens.
std::set<uint16_t> ListeningPorts() {
  std::set<std::string> ours;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string to = std::filesystem::read_symlink(entry.path(), gone).string();
    if (to.starts_with("socket:[")) ours.insert(to.substr(8, to.size() - 9));
  }
  std::ifstream table("/proc/self/net/tcp");
  std::string line, slot, local, remote, state, skipped, inode;
  std::set<uint16_t> ports;
  for (std::getline(table, line); std::getline(table, line);) {
    std::istringstream fields(line);
    fields >> slot >> local >> remote >> state >> skipped >> skipped >> skipped >> skipped >>
        skipped >> inode;
    if (state != "0A" || !ours.contains(inode)) continue;
    ports.insert(static_cast<uint16_t>(std::stoul(local.substr(local.find(':') + 1), nullptr, 16)));
  }
  return ports;
}

// Another program scans this machine's ports once, just when the first rank listens.
class ScannedRendezvous : public HashRendezvous {
 public:
  Status Put(const std::string& key, std::string value) override {
    if (strangers == 0) {
      for (const uint16_t port : ListeningPorts()) {
        const int stranger = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(port);
        if (connect(stranger, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
          ++strangers;
        }
        close(stranger);
      }
    }
    return HashRendezvous::Put(key, std::move(value));
  }
  std::atomic<int> strangers = 0;
};

TEST(GlooMesh, AScanOfItsPortsDoesNotEndTheStart) {
  ScannedRendezvous rendezvous;
  std::vector<std::jthread> threads;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const auto mesh = ConnectGlooMesh(rendezvous, {.rank = rank, .size = 3, .prefix = "g0"});
      EXPECT_TRUE(mesh.ok()) << ToText(mesh.status());
    });
  }
  threads.clear();
  EXPECT_GT(rendezvous.strangers, 0);
}

TEST(GlooMesh, ListensAtNoAddressThatMeansAll) {
  HashRendezvous rendezvous;
  const auto mesh =
      ConnectGlooMesh(rendezvous, {.rank = 0, .size = 2, .host = "0.0.0.0", .prefix = "g0"});
  EXPECT_EQ(mesh.status().code(), StatusCode::kInvalidArgument);
}

TEST(GlooMesh, WhatComesTooLateIsWrittenNowhere) {
  HashRendezvous rendezvous;
  std::atomic<bool> ended = false;
  const auto connect = [&](uint32_t rank) {
    MeshLimits limits{.timeout = seconds(20)};
    if (rank == 1) limits.interrupted = [&] { return ended ? Cancelled("stopped") : OkStatus(); };
    return *ConnectGlooMesh(rendezvous,
                            {.rank = rank, .size = 2, .prefix = "late", .limits = limits});
  };
  std::latch gave_up(1), sent(1);
  std::jthread other([&] {
    const std::unique_ptr<Mesh> mesh = connect(0);
    ended = true;
    gave_up.wait();
    const std::byte late{7};
    const Outgoing out{1, std::span(&late, 1)};
    mesh->Exchange({}, "late", std::span(&out, 1), {}).IgnoreError();
    sent.count_down();
    sent.wait();
  });
  const std::unique_ptr<Mesh> mesh = connect(1);
  std::byte place{1};
  const Incoming in{0, std::span(&place, 1)};
  EXPECT_EQ(ToText(mesh->Exchange({}, "late", {}, std::span(&in, 1))), "stopped");
  gave_up.count_down();
  sent.wait();
  other.join();
  EXPECT_EQ(place, std::byte{1});
}

// Some messages are written after the other end has gone; the system then sends SIGPIPE to a
// process that does not ignore it.
TEST(GlooMesh, WritingToOneThatIsGoneIsAnErrorAndNoSignal) {
  for (int repeat = 0; repeat < 3; ++repeat) {
    HashRendezvous rendezvous;
    const auto connect = [&](uint32_t rank) {
      return *ConnectGlooMesh(
          rendezvous,
          {.rank = rank, .size = 2, .prefix = "gone", .limits = {.timeout = seconds(5)}});
    };
    std::latch sending(1);
    std::jthread other([&] {
      const std::unique_ptr<Mesh> mesh = connect(0);
      sending.wait();
    });
    const std::unique_ptr<Mesh> mesh = connect(1);
    const std::byte byte{7};
    const std::vector<Outgoing> out(20'000, {0, std::span(&byte, 1)});
    std::byte place{};
    const Incoming in{0, std::span(&place, 1)};
    sending.count_down();
    EXPECT_EQ(mesh->Exchange({}, "sum", out, std::span(&in, 1)).code(), StatusCode::kUnavailable);
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, CollectiveTest,
                         ::testing::Values(Case{Kind::kMemory, 1}, Case{Kind::kMemory, 2},
                                           Case{Kind::kMemory, 3}, Case{Kind::kMemory, 4},
                                           Case{Kind::kGloo, 1}, Case{Kind::kGloo, 2},
                                           Case{Kind::kGloo, 4}),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(Meshes, PeerTest,
                         ::testing::Values(Case{Kind::kMemory, 2}, Case{Kind::kMemory, 4},
                                           Case{Kind::kGloo, 2}, Case{Kind::kGloo, 4}),
                         NameOfCase);

}  // namespace
}  // namespace dt::worker
