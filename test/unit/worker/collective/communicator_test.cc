// Goal: collectives give the results of plain loops in the order of the group, bit for bit, on any
// group of ranks; a peer that is silent, lost, or makes another call is named. Method: every rank
// is a thread; groups are subsets in other orders, and several communicate side by side.
#include "worker/collective/communicator.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/float_formats.h"
#include "common/base/philox.h"
#include "test/unit/worker/collective/card_ranks.h"
#include "test/unit/worker/collective/mesh_ranks.h"
#include "test/unit/worker/collective/operations.h"

namespace dt::worker {
namespace {

std::vector<float> OfRank(uint32_t rank, size_t n) {
  std::vector<float> values(n);
  FillNormal(26, rank, values);
  return values;
}

// Groups of so many ranks: all, in order and in another; the even and the odd ones.
std::vector<RankGroup> GroupsOf(uint32_t ranks) {
  RankGroup all{.id = 1}, turned{.id = 2}, even{.id = 3}, odd{.id = 4};
  for (uint32_t r = 0; r < ranks; ++r) {
    all.ranks.push_back(r);
    turned.ranks.push_back((r * 3 + 1) % ranks);
    (r % 2 == 0 ? even : odd).ranks.push_back(r);
  }
  std::ranges::sort(turned.ranks);
  turned.ranks.erase(std::unique(turned.ranks.begin(), turned.ranks.end()), turned.ranks.end());
  std::ranges::reverse(turned.ranks);
  return {all, turned, even, odd};
}

class CommunicatorTest : public ::testing::TestWithParam<MeshCase> {
 protected:
  // Calls body(communicator, call) on every member of every group; groups do not wait for another.
  void OnMembers(const std::function<void(Communicator&, const CollectiveCall&)>& body) {
    const std::vector<RankGroup> groups = GroupsOf(GetParam().ranks);
    const auto on_each = [&](Communicator& communicator) {
      for (const RankGroup& group : groups) {
        if (std::ranges::count(group.ranks, communicator.rank()) == 0) continue;
        body(communicator, {.group = group, .name = "test"});
      }
    };
    const bool real = GetParam().kind == MeshKind::kRealCards;
    if (real && !HasRealCards(static_cast<int>(GetParam().ranks))) {
      GTEST_SKIP() << "needs " << GetParam().ranks << " cards and NCCL";
    }
    if (real || GetParam().kind == MeshKind::kCardsOnHost) {
      return OnCards({GetParam().ranks, real, groups, {.timeout = seconds(20)}}, on_each);
    }
    OnMeshes(GetParam(), {.timeout = seconds(20)}, [&](std::unique_ptr<Mesh> mesh) {
      const std::unique_ptr<Communicator> communicator = MakeMeshCommunicator(*mesh);
      on_each(*communicator);
    });
  }
};
// Cards add no terms of several slices.
class SumsOfTermsTest : public CommunicatorTest {};

constexpr size_t kSizes[] = {0, 1, 100, 5003, 300'001};

TEST_P(CommunicatorTest, AllReduceAddsInTheOrderOfTheGroup) {
  for (const size_t n : kSizes) {
    OnMembers([&](Communicator& communicator, const CollectiveCall& call) {
      std::vector<float> sum = OfRank(call.group.ranks[0], n), largest = sum;
      for (uint32_t m = 1; m < call.group.size(); ++m) {
        const std::vector<float> term = OfRank(call.group.ranks[m], n);
        for (size_t i = 0; i < n; ++i) {
          sum[i] += term[i];
          largest[i] = std::max(largest[i], term[i]);
        }
      }
      const std::vector<float> own = OfRank(communicator.rank(), n);
      std::vector<float> out(n);
      ASSERT_TRUE(communicator.AllReduce(call, {}, Bytes(own), Writable(out)).ok());
      EXPECT_EQ(out, sum);
      out = own;  // In place.
      ASSERT_TRUE(communicator.AllReduce(call, {}, Bytes(out), Writable(out)).ok());
      EXPECT_EQ(out, sum);
      ASSERT_TRUE(
          communicator.AllReduce(call, {.how = Reduction::kMax}, Bytes(own), Writable(out)).ok());
      EXPECT_EQ(out, largest);
    });
  }
}

// More chunks than are awaited at a time.
TEST(Communicator, AllReduceOfManyChunks) {
  RankGroup both{.id = 1, .ranks = {1, 0}};
  const size_t n = 5'200'000;
  std::vector<float> sum = OfRank(1, n);
  const std::vector<float> term = OfRank(0, n);
  for (size_t i = 0; i < n; ++i) sum[i] += term[i];
  for (const MeshKind kind : {MeshKind::kMemory, MeshKind::kGloo}) {
    OnMeshes({kind, 2}, {.timeout = seconds(20)}, [&](std::unique_ptr<Mesh> mesh) {
      const std::unique_ptr<Communicator> communicator = MakeMeshCommunicator(*mesh);
      std::vector<float> values = OfRank(mesh->rank(), n);
      ASSERT_TRUE(
          communicator
              ->AllReduce({.group = both, .name = "test"}, {}, Bytes(values), Writable(values))
              .ok());
      EXPECT_EQ(values, sum);
    });
  }
}

TEST_P(CommunicatorTest, AllReduceOfDoubles) {
  OnMembers([&](Communicator& communicator, const CollectiveCall& call) {
    std::vector<double> values = {1e300, 1.0 + communicator.rank()};
    ASSERT_TRUE(
        communicator.AllReduce(call, {.dtype = DType::kF64}, Bytes(values), Writable(values)).ok());
    const uint32_t ranks = std::accumulate(call.group.ranks.begin(), call.group.ranks.end(), 0U);
    EXPECT_EQ(values[0], 1e300 * call.group.size());
    EXPECT_EQ(values[1], ranks + call.group.size());
  });
}

// Member m gets the m-th part, m · 17 elements more than the one before.
TEST_P(CommunicatorTest, ReduceScatterGivesEachItsPart) {
  OnMembers([&](Communicator& communicator, const CollectiveCall& call) {
    const uint32_t me = call.group.PositionOf(communicator.rank());
    std::vector<size_t> sizes;
    size_t n = 0, begin = 0;
    for (uint32_t m = 0; m < call.group.size(); ++m) {
      if (m == me) begin = n;
      sizes.push_back(17 * m * sizeof(float));
      n += 17 * m;
    }
    std::vector<float> sum = OfRank(call.group.ranks[0], n);
    for (uint32_t m = 1; m < call.group.size(); ++m) {
      const std::vector<float> term = OfRank(call.group.ranks[m], n);
      for (size_t i = 0; i < n; ++i) sum[i] += term[i];
    }
    const std::vector<float> own = OfRank(communicator.rank(), n);
    std::vector<float> out(17 * me);
    ASSERT_TRUE(communicator.ReduceScatter(call, {}, Bytes(own), sizes, Writable(out)).ok());
    EXPECT_TRUE(std::equal(out.begin(), out.end(), sum.begin() + static_cast<ptrdiff_t>(begin)));
  });
}

TEST_P(CommunicatorTest, AllGatherJoinsInTheOrderOfTheGroup) {
  OnMembers([&](Communicator& communicator, const CollectiveCall& call) {
    std::vector<float> all;
    std::vector<size_t> sizes;
    for (const uint32_t r : call.group.ranks) {
      const std::vector<float> part = OfRank(r, 1000 * r);
      all.insert(all.end(), part.begin(), part.end());
      sizes.push_back(part.size() * sizeof(float));
    }
    const std::vector<float> own = OfRank(communicator.rank(), 1000 * communicator.rank());
    std::vector<float> out(all.size());
    ASSERT_TRUE(communicator.AllGather(call, Bytes(own), sizes, Writable(out)).ok());
    EXPECT_EQ(out, all);
  });
}

TEST_P(CommunicatorTest, BroadcastGivesTheRootsBytes) {
  OnMembers([&](Communicator& communicator, const CollectiveCall& call) {
    for (uint32_t root = 0; root < call.group.size(); ++root) {
      std::vector<float> values = OfRank(communicator.rank(), 333);
      ASSERT_TRUE(communicator.Broadcast(call, root, Writable(values)).ok());
      EXPECT_EQ(values, OfRank(call.group.ranks[root], 333));
    }
  });
}

// Member a sends a + 2 b numbers a · 100 + b to member b.
TEST_P(CommunicatorTest, AllToAllByCounts) {
  OnMembers([&](Communicator& communicator, const CollectiveCall& call) {
    const uint32_t me = call.group.PositionOf(communicator.rank());
    std::vector<uint32_t> in, expected;
    std::vector<size_t> send, receive;
    for (uint32_t m = 0; m < call.group.size(); ++m) {
      in.insert(in.end(), me + 2 * m, me * 100 + m);
      expected.insert(expected.end(), m + 2 * me, m * 100 + me);
      send.push_back((me + 2 * m) * sizeof(uint32_t));
      receive.push_back((m + 2 * me) * sizeof(uint32_t));
    }
    std::vector<uint32_t> out(expected.size());
    ASSERT_TRUE(communicator.AllToAll(call, Bytes(in), {send, receive}, Writable(out)).ok());
    EXPECT_EQ(out, expected);
  });
}

TEST_P(CommunicatorTest, NeighboursInARing) {
  OnMembers([&](Communicator& communicator, const CollectiveCall& call) {
    const uint32_t me = call.group.PositionOf(communicator.rank()), n = call.group.size();
    if (n < 2) return;
    const std::vector<float> own = OfRank(communicator.rank(), 50);
    std::vector<float> before(50);
    const Outgoing send{(me + 1) % n, Bytes(own)};
    const Incoming receive{(me + n - 1) % n, Writable(before)};
    ASSERT_TRUE(communicator.NeighborExchange(call, {&send, 1}, {&receive, 1}).ok());
    EXPECT_EQ(before, OfRank(call.group.ranks[(me + n - 1) % n], 50));
    ASSERT_TRUE(me != 0 || communicator.Send(call, 1, Bytes(own)).ok());
    ASSERT_TRUE(me != 1 || communicator.Receive(call, 0, Writable(before)).ok());
    EXPECT_TRUE(communicator.Barrier(call).ok());
  });
}

// Members have several terms of a sum or none, in any order; with ranges each gets its own only.
TEST_P(SumsOfTermsTest, TheyHaveTheBitsOfALoop) {
  constexpr uint32_t kTerms = 5;
  const auto term_of = [](size_t t, size_t n) { return OfRank(100 + static_cast<uint32_t>(t), n); };
  for (const size_t n : kSizes) {
    std::vector<float> sum = term_of(0, n);
    for (uint32_t t = 1; t < kTerms; ++t) {
      const std::vector<float> term = term_of(t, n);
      for (size_t i = 0; i < n; ++i) sum[i] += term[i];
    }
    OnMembers([&](Communicator& communicator, const CollectiveCall& call) {
      const uint32_t me = call.group.PositionOf(communicator.rank());
      std::vector<uint32_t> owner;
      std::vector<std::vector<float>> own(kTerms);
      std::vector<std::span<const std::byte>> bytes(kTerms);
      for (uint32_t t = 0; t < kTerms; ++t) {
        owner.push_back((t * 7 + 1) % call.group.size());
        if (owner[t] == me) bytes[t] = Bytes(own[t] = term_of(t, n));
      }
      std::vector<float> out(n, -1.0f);
      ASSERT_TRUE(communicator.ReduceTerms(call, {}, {owner, bytes}, Writable(out)).ok());
      EXPECT_EQ(out, sum);
      // Two pieces, of each of which a member gets a part.
      std::vector<Terms::Range> ranges;
      std::vector<float> want(n, -1.0f);
      const size_t members = call.group.size();
      for (uint32_t m = 0; m < members; ++m) {
        for (const auto& [begin, end] : {std::pair(size_t{0}, n / 3), std::pair(n / 2, n)}) {
          const size_t from = begin + (end - begin) * m / members;
          const size_t to = begin + (end - begin) * (m + 1) / members;
          ranges.push_back({m, from * sizeof(float), to * sizeof(float)});
          for (size_t i = from; m == me && i < to; ++i) want[i] = sum[i];
        }
      }
      out.assign(n, -1.0f);
      ASSERT_TRUE(communicator.ReduceTerms(call, {}, {owner, bytes, ranges}, Writable(out)).ok());
      EXPECT_EQ(out, want);
    });
  }
}

// Terms of 16 bits are added in fp32, and only the sum is rounded.
TEST_P(SumsOfTermsTest, ThoseOfBf16AreThoseOfFp32Rounded) {
  constexpr uint32_t kTerms = 5;
  for (const size_t n : {size_t{7}, size_t{3001}, size_t{700001}}) {
    const auto term_of = [n](uint32_t t) {
      std::vector<uint16_t> term(n);
      EncodeRow(FloatFormat::kBf16, OfRank(t, n), reinterpret_cast<std::byte*>(term.data()));
      return term;
    };
    std::vector<float> sum(n, 0.0f);
    for (uint32_t t = 0; t < kTerms; ++t) {
      const std::vector<uint16_t> term = term_of(t);
      for (size_t i = 0; i < n; ++i) sum[i] += FromBf16(term[i]);
    }
    std::vector<uint16_t> want(n);
    EncodeRow(FloatFormat::kBf16, sum, reinterpret_cast<std::byte*>(want.data()));
    OnMembers([&](Communicator& communicator, const CollectiveCall& call) {
      const uint32_t me = call.group.PositionOf(communicator.rank());
      std::vector<uint32_t> owner;
      std::vector<std::vector<uint16_t>> own(kTerms);
      std::vector<std::span<const std::byte>> bytes(kTerms);
      for (uint32_t t = 0; t < kTerms; ++t) {
        owner.push_back(t % call.group.size());
        if (owner[t] == me) bytes[t] = Bytes(own[t] = term_of(t));
      }
      std::vector<uint16_t> out(n);
      const Reduce reduce{.dtype = DType::kBf16};
      ASSERT_TRUE(communicator.ReduceTerms(call, reduce, {owner, bytes}, Writable(out)).ok());
      EXPECT_EQ(out, want);
    });
  }
}

TEST_P(CommunicatorTest, NobodyPassesABarrierBeforeAllAreThere) {
  std::map<uint32_t, std::atomic<uint32_t>> entered;
  for (uint32_t group = 1; group <= 4; ++group) entered[group] = 0;
  OnMembers([&](Communicator& communicator, const CollectiveCall& call) {
    for (uint32_t round = 1; round <= 5; ++round) {
      CollectiveCall barrier = call;
      barrier.step = round;
      ++entered.at(call.group.id);
      ASSERT_TRUE(communicator.Barrier(barrier).ok());
      EXPECT_GE(entered.at(call.group.id).load(), round * call.group.size());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Cards, CommunicatorTest,
                         ::testing::Values(MeshCase{MeshKind::kCardsOnHost, 1},
                                           MeshCase{MeshKind::kCardsOnHost, 2},
                                           MeshCase{MeshKind::kCardsOnHost, 3},
                                           MeshCase{MeshKind::kCardsOnHost, 4},
                                           MeshCase{MeshKind::kRealCards, 2}),
                         NameOfCase);
constexpr MeshCase kMeshes[] = {
    {MeshKind::kMemory, 1}, {MeshKind::kMemory, 2}, {MeshKind::kMemory, 3}, {MeshKind::kMemory, 8},
    {MeshKind::kGloo, 2},   {MeshKind::kGloo, 3},   {MeshKind::kGloo, 4},   {MeshKind::kGloo, 8},
    {MeshKind::kShared, 2}, {MeshKind::kShared, 3}, {MeshKind::kShared, 4}, {MeshKind::kShared, 8}};
INSTANTIATE_TEST_SUITE_P(Meshes, CommunicatorTest, ::testing::ValuesIn(kMeshes), NameOfCase);
INSTANTIATE_TEST_SUITE_P(Meshes, SumsOfTermsTest, ::testing::ValuesIn(kMeshes), NameOfCase);

// ------------------------------------------------------------ peers that fail

class LostMemberTest : public ::testing::TestWithParam<MeshCase> {};

// Rank 1 makes no call, or is gone. All others end within the deadline, with an error that names
// it, the operator, the step and the kind of communication.
TEST_P(LostMemberTest, IsNamedByAllOthers) {
  const uint32_t ranks = GetParam().ranks;
  RankGroup all{.id = 1};
  for (uint32_t r = 0; r < ranks; ++r) all.ranks.push_back(r);
  for (const bool silent : {true, false}) {
    for (const NamedOperation& operation : Operations(ranks)) {
      SCOPED_TRACE(operation.name);
      std::latch done(ranks - 1);
      OnMeshes(GetParam(), {.timeout = milliseconds(400)}, [&](std::unique_ptr<Mesh> mesh) {
        const std::unique_ptr<Communicator> communicator = MakeMeshCommunicator(*mesh);
        if (mesh->rank() == 1) {
          if (silent) done.wait();
          return;
        }
        const TimePoint begun = SystemClock().Now();
        const Status status =
            operation.run(*communicator, {.group = all, .name = "wide", .node = 7, .step = 12});
        EXPECT_LT(SystemClock().Now() - begun, seconds(5));
        EXPECT_THAT(ToText(status), testing::StartsWith("step 12, " + operation.name + ": wide: "));
        EXPECT_THAT(ToText(status), testing::HasSubstr("rank 1"));
        EXPECT_TRUE(communicator->broken());
        done.count_down();
      });
    }
  }
}

TEST_P(LostMemberTest, TheEndOfTheJobEndsAWaitAtOnce) {
  const RankGroup all = RankGroup::All(GetParam().ranks);
  std::atomic<bool> ended = false;
  std::latch gave_up(GetParam().ranks - 1);
  const MeshLimits limits = {.timeout = seconds(60), .interrupted = [&] {
                               return ended ? Cancelled("the job was stopped") : OkStatus();
                             }};
  const TimePoint begun = SystemClock().Now();
  OnMeshes(GetParam(), limits, [&](std::unique_ptr<Mesh> mesh) {
    if (mesh->rank() == 0) {
      ended = true;
      gave_up.wait();
      return;
    }
    const std::unique_ptr<Communicator> communicator = MakeMeshCommunicator(*mesh);
    EXPECT_EQ(ToText(communicator->Barrier({.group = all, .name = "barrier"})),
              "the job was stopped");
    EXPECT_FALSE(communicator->broken());
    gave_up.count_down();
  });
  EXPECT_LT(SecondsBetween(begun, SystemClock().Now()), 20);
}

TEST_P(LostMemberTest, WhoGivesUpWaitsNoLonger) {
  const RankGroup all = RankGroup::All(GetParam().ranks);
  std::latch gave_up(GetParam().ranks - 1);
  const TimePoint begun = SystemClock().Now();
  OnMeshes(GetParam(), {.timeout = seconds(60)}, [&](std::unique_ptr<Mesh> mesh) {
    if (mesh->rank() == 0) return gave_up.wait();
    const std::unique_ptr<Communicator> communicator = MakeMeshCommunicator(*mesh);
    std::jthread other([&] { mesh->Cancel(); });
    EXPECT_EQ(ToText(communicator->Barrier({.group = all, .name = "barrier"})),
              "this rank has given up");
    gave_up.count_down();
  });
  EXPECT_LT(SecondsBetween(begun, SystemClock().Now()), 20);
}

INSTANTIATE_TEST_SUITE_P(Meshes, LostMemberTest,
                         ::testing::Values(MeshCase{MeshKind::kMemory, 3},
                                           MeshCase{MeshKind::kGloo, 3},
                                           MeshCase{MeshKind::kShared, 3}),
                         NameOfCase);

// NCCL cannot tell which peer it waits for.
TEST(CardCommunicator, ASilentPeerEndsACallAtTheDeadline) {
  const std::vector<RankGroup> groups = {{.id = 1, .ranks = {0, 1, 2}}};
  std::latch joined(3), done(2);
  OnCards({3, false, groups, {.timeout = milliseconds(400)}}, [&](Communicator& communicator) {
    joined.arrive_and_wait();
    if (communicator.rank() == 1) return done.wait();
    std::vector<float> values(10, 1.0f);
    const TimePoint begun = SystemClock().Now();
    const CollectiveCall call{.group = groups[0], .name = "wide", .step = 12};
    const Status status = communicator.AllReduce(call, {}, Bytes(values), Writable(values));
    EXPECT_LT(SystemClock().Now() - begun, seconds(5));
    const std::string where = fmt::format(
        "rank {}: step 12, all-reduce of \"wide\" in group [0, 1, 2]: ", communicator.rank());
    EXPECT_THAT(ToText(status), testing::StartsWith(where));
    EXPECT_TRUE(communicator.broken());
    EXPECT_FALSE(communicator.Barrier(call).ok()) << "it is of no use any more";
    done.count_down();
  });
}

TEST(CardCommunicator, WithoutNcclTheReasonIsTold) {
  CudaTable table = test::TableOnHost();
  table.nccl.load = []() -> CudaError { return "libnccl.so.2 cannot be loaded"; };
  const auto card = CudaAccelerator::Over(table, {.kind = DeviceKind::kCuda, .index = 1});
  HashRendezvous rendezvous;
  const auto connected = ConnectNccl({}, {.card = *card, .rendezvous = rendezvous, .prefix = "t"});
  EXPECT_EQ(ToText(connected.status()), "NCCL failed: libnccl.so.2 cannot be loaded");
}

// One rank leaves a call out: the next one, of another node, is not mistaken for it.
TEST(Communicator, AnotherCallIsNotMistaken) {
  RankGroup both{.id = 1, .ranks = {0, 1}};
  OnMeshes({MeshKind::kMemory, 2}, {.timeout = milliseconds(300)}, [&](std::unique_ptr<Mesh> mesh) {
    const std::unique_ptr<Communicator> communicator = MakeMeshCommunicator(*mesh);
    std::vector<float> values(10, 1.0f);
    const bool first = mesh->rank() == 0;
    const CollectiveCall call{
        .group = both, .name = first ? "first" : "second", .node = first ? 1U : 2U};
    const Status status = communicator->AllReduce(call, {}, Bytes(values), Writable(values));
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
    EXPECT_EQ(values, std::vector<float>(10, 1.0f));
  });
}

}  // namespace
}  // namespace dt::worker
