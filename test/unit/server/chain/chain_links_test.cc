// Goal: all members of a chain come to have the same bits, whatever happens to the letters between
// them, and a record counts as stable only when all members have it. Method: the test carries the
// letters of up to three servers, each of which is the head of some shards, and loses, doubles,
// delays and forges them; a set of shards without copies tells what the bits must be.
#include "server/chain/chain_links.h"

#include <algorithm>
#include <functional>
#include <memory>

#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "server/shard/checksum.h"
#include "test/support/push_maker.h"
#include "test/support/shard_sets.h"

namespace dt::server {
namespace {

constexpr uint32_t kLinkShards = 4, kSlices = 2;
constexpr Duration kFirstPause = milliseconds(300);

std::vector<TableSpec> LinkTables() {
  TableSpec half = test::SimpleTable("b", 2, OptimizerKind::kAdagrad);
  half.wire = FloatFormat::kFp16;
  return {test::SimpleTable("a", 3, OptimizerKind::kAdam), half};
}
const std::vector<TableSpec> kLinkTables = LinkTables();
const std::vector<WireTable> kLinkWire = {{3, FloatFormat::kFp32}, {2, FloatFormat::kFp16}};

std::string EndpointOf(ProcessId server) { return fmt::format("server-{}", server.value()); }

// Each shard is on all servers. With `turned`, each server is the head of some shards and the tail
// of others; otherwise server 1 is the head of all.
ShardMap ChainsOf(uint32_t servers, bool turned) {
  std::vector<ServerInfo> infos;
  std::vector<ProcessId> members;
  for (uint32_t i = 1; i <= servers; ++i) {
    members.emplace_back(i);
    infos.push_back({members.back(), {EndpointOf(members.back())}});
  }
  ShardMap map = MakeShardMap(MapVersion(1), kLinkShards, std::move(infos));
  for (Chain& chain : map.chains) {
    chain.members = members;
    if (turned) std::ranges::rotate(members, members.begin() + 1);
  }
  return map;
}
ShardMap WithoutServer(ShardMap map, ProcessId server) {
  map.version = MapVersion(map.version.value() + 1);
  for (Chain& chain : map.chains) {
    chain.since = map.version;
    std::erase(chain.members, server);
  }
  std::erase_if(map.servers, [&](const ServerInfo& info) { return info.id == server; });
  return map;
}

// The part of a slice's push that goes to these shards.
PushRequest PushTo(const std::vector<ShardId>& shards, Step step, SliceIndex slice) {
  test::RowMap rows;
  for (uint32_t i = 0; i < 16; ++i) {
    const PhiloxBlock bits = Philox(slice + 1, step, i);
    std::vector<float> gradient(kLinkTables[bits[0] % 2].dim);
    FillNormal(bits[2], i, gradient);
    rows[{bits[0] % 2, bits[1] % 50}] = gradient;
  }
  const test::Grouping grouping(kLinkTables, kLinkShards, shards, rows);
  PushRequest push = grouping.Push(0, test::kFirstStamp, step);
  push.gradients = test::EncodedRows(kLinkTables, grouping.out_groups, grouping.floats);
  push.slice = slice;
  push.slices = kSlices;
  return push;
}

struct LinkServer : RecordSink {
  LinkServer(ProcessId self, const ShardMap& map)
      : shards({.tables = kLinkTables,
                .slices = kSlices,
                .view = {Generation(1), ViewNumber(1), map, {}},
                .self = self}) {
    shards.RecordTo(this);
    links.SetMap({}, shards);
  }
  void OnRecord(ShardId shard, const Record& record) override { links.OnRecord(shard, record); }

  ShardSet shards;
  ChainLinks links;
};

void ExpectSameBits(const LinkServer& a, const LinkServer& b) {
  const auto x = ReportTables(kLinkTables, a.shards.shards()),
             y = ReportTables(kLinkTables, b.shards.shards());
  for (size_t t = 0; t < kLinkTables.size(); ++t) {
    EXPECT_GT(x[t].rows, 0u);
    EXPECT_EQ(x[t].rows, y[t].rows) << kLinkTables[t].name;
    EXPECT_EQ(x[t].checksum_low, y[t].checksum_low) << kLinkTables[t].name;
    EXPECT_EQ(x[t].checksum_high, y[t].checksum_high) << kLinkTables[t].name;
  }
  for (size_t s = 0; s < kLinkShards; ++s) {
    EXPECT_EQ(a.shards.shards()[s].position(), b.shards.shards()[s].position()) << s;
    EXPECT_EQ(a.shards.shards()[s].now(), b.shards.shards()[s].now()) << s;
  }
}

class ChainLinksTest : public ::testing::Test {
 protected:
  using Letter = ChainLinks::Letter;

  void Begin(uint32_t servers, bool turned = false) {
    servers_.clear();
    map_ = ChainsOf(servers, turned);
    for (const ServerInfo& info : map_.servers) {
      servers_[info.endpoints.front()] = std::make_unique<LinkServer>(info.id, map_);
    }
  }
  LinkServer& Server(uint32_t id) { return *servers_.at(EndpointOf(ProcessId(id))); }

  void Push(Step step, SliceIndex slice) {
    for (const auto& [endpoint, server] : servers_) {
      std::vector<ShardId> heads;
      for (const Shard& shard : server->shards.shards()) {
        if (shard.place().head) heads.push_back(shard.id());
      }
      ASSERT_TRUE(heads.empty() || server->shards.Push(PushTo(heads, step, slice)).ok());
    }
  }
  // All workers are past the steps before `step`.
  void Advance(Step step) {
    for (const auto& [endpoint, server] : servers_) server->shards.Advance(step);
  }
  void PushStep(Step step) {
    for (SliceIndex slice = 0; slice < kSlices; ++slice) Push(step, slice);
    Advance(step + 1);
  }

  std::vector<Letter> LettersOf(LinkServer& server) {
    std::vector<Letter> letters;
    server.links.TakeLetters(now_, server.shards, letters);
    return letters;
  }
  std::vector<Letter> Letters() {
    std::vector<Letter> all;
    for (const auto& [endpoint, server] : servers_) {
      std::ranges::move(LettersOf(*server), std::back_inserter(all));
    }
    return all;
  }
  static DataRequest Opened(const Letter& letter) {
    Result<DataRequest> request = DecodeDataRequest(letter.frames, kLinkWire);
    EXPECT_TRUE(request.ok()) << request.status();
    return *std::move(request);
  }
  Status Give(LinkServer& to, DataRequest request) {
    if (request.kind == DataRequest::Kind::kRecords) {
      return to.links.OnRecords(std::move(request.records), to.shards);
    }
    EXPECT_EQ(request.kind, DataRequest::Kind::kAcks);
    return to.links.OnAcks(now_, request.acks, to.shards);
  }
  // A letter to a server that is gone is lost.
  void Deliver(const Letter& letter) {
    const auto to = servers_.find(letter.endpoint);
    if (to == servers_.end()) return;
    const Status taken = Give(*to->second, Opened(letter));
    ASSERT_TRUE(taken.ok()) << taken;
  }
  // Carries all letters until no more are sent; no time passes.
  void Carry() {
    for (int round = 0; round < 100; ++round) {
      const std::vector<Letter> letters = Letters();
      if (letters.empty()) return;
      for (const Letter& letter : letters) Deliver(letter);
    }
    FAIL() << "letters without end";
  }
  // Delivers until all is quiet, however long it takes.
  void Settle() {
    for (int i = 0; i < 10; ++i, now_ += seconds(4)) Carry();
  }

  void Remove(uint32_t id) {
    servers_.erase(EndpointOf(ProcessId(id)));
    map_ = WithoutServer(map_, ProcessId(id));
    for (const auto& [endpoint, server] : servers_) Learn(*server);
  }
  void Learn(LinkServer& server) {
    server.shards.SetMap(map_);
    server.links.SetMap(now_, server.shards);
  }

  void ExpectAllHaveTheStepsBefore(Step end) {
    LinkServer alone(ProcessId(1), ChainsOf(1, false));
    for (Step step = 0; step < end; ++step) {
      for (SliceIndex slice = 0; slice < kSlices; ++slice) {
        ASSERT_TRUE(alone.shards.Push(PushTo(test::AllShards(kLinkShards), step, slice)).ok());
      }
      alone.shards.Advance(step + 1);
    }
    for (const auto& [endpoint, server] : servers_) {
      SCOPED_TRACE(endpoint);
      ExpectSameBits(alone, *server);
      EXPECT_EQ(server->links.kept_bytes(), 0u);
    }
  }
  // The number of the last record at server 1, the head, if it made the same of every shard.
  Position Last() { return Server(1).shards.shards()[0].position(); }
  bool IsStable(Position position) { return Server(1).links.IsStable(ShardId(0), position); }

  TimePoint now_{};
  ShardMap map_;
  std::map<std::string, std::unique_ptr<LinkServer>> servers_;
};

TEST_F(ChainLinksTest, RecordsComeToAllMembers) {
  for (const uint32_t servers : {2u, 3u}) {
    for (const bool turned : {false, true}) {
      SCOPED_TRACE(testing::Message() << servers << " servers, turned " << turned);
      Begin(servers, turned);
      for (Step step = 0; step < 5; ++step) {
        PushStep(step);
        Carry();
      }
      ExpectAllHaveTheStepsBefore(5);
    }
  }
}

TEST_F(ChainLinksTest, AShardWithoutOtherMembersHasNoLink) {
  Begin(1);
  PushStep(0);
  EXPECT_FALSE(Server(1).links.active());
  EXPECT_TRUE(Letters().empty());
  EXPECT_TRUE(IsStable(Last()));
  ExpectAllHaveTheStepsBefore(1);
}

TEST_F(ChainLinksTest, ARecordIsStableWhenTheTailHasItAndTheHeadKnows) {
  Begin(3);
  EXPECT_TRUE(IsStable(0));
  Push(0, 0);
  ASSERT_EQ(Last(), 1u);
  const uint64_t before = Server(1).links.progress();
  for (const uint32_t from : {1u, 2u, 3u, 2u}) {  // Twice towards the tail, twice back.
    EXPECT_FALSE(IsStable(1)) << "before the letters of server " << from;
    EXPECT_GT(Server(1).links.kept_bytes(), 0u);
    EXPECT_EQ(Server(1).links.progress(), before);
    for (const Letter& letter : LettersOf(Server(from))) Deliver(letter);
  }
  EXPECT_TRUE(IsStable(1));
  EXPECT_NE(Server(1).links.progress(), before);
  EXPECT_EQ(Server(1).links.kept_bytes(), 0u);
}

TEST_F(ChainLinksTest, WhatIsLostIsSentAgainAfterThePause) {
  Begin(2);
  PushStep(0);
  EXPECT_EQ(LettersOf(Server(1)).size(), 1u);  // It is lost.
  now_ += kFirstPause - milliseconds(1);
  EXPECT_TRUE(LettersOf(Server(1)).empty());
  now_ += milliseconds(1);
  EXPECT_EQ(LettersOf(Server(1)).size(), 1u) << "lost as well";
  now_ += kFirstPause;
  EXPECT_TRUE(LettersOf(Server(1)).empty()) << "the pause is longer now";
  EXPECT_TRUE(Server(1).links.silent().empty());
  for (int i = 0; i < 10; ++i, now_ += kFirstPause) LettersOf(Server(1));
  EXPECT_EQ(Server(1).links.silent(), std::vector{ProcessId(2)}) << "for a lease";
  now_ += seconds(4);
  Carry();
  EXPECT_TRUE(Server(1).links.silent().empty());
  ExpectAllHaveTheStepsBefore(1);
}

TEST_F(ChainLinksTest, ALostAcknowledgementIsToldAgain) {
  Begin(2);
  PushStep(0);
  for (const Letter& letter : LettersOf(Server(1))) Deliver(letter);
  ASSERT_FALSE(LettersOf(Server(2)).empty());  // They are lost.
  while (!LettersOf(Server(2)).empty()) continue;
  EXPECT_FALSE(IsStable(Last()));
  now_ += kFirstPause;
  Carry();
  EXPECT_TRUE(IsStable(Last()));
  ExpectAllHaveTheStepsBefore(1);
}

TEST_F(ChainLinksTest, WhatComesTwiceIsDropped) {
  Begin(3, true);
  for (Step step = 0; step < 3; ++step) {
    PushStep(step);
    for (std::vector<Letter> letters = Letters(); !letters.empty(); letters = Letters()) {
      for (int time = 0; time < 2; ++time)
        std::ranges::for_each(letters, [&](auto& l) { Deliver(l); });
    }
  }
  ExpectAllHaveTheStepsBefore(3);
}

// Letters are lost, doubled and out of order; a server may be lost on the way. Workers send again
// what nobody has acknowledged.
TEST_F(ChainLinksTest, WhateverHappensToLettersAllMembersAgree) {
  constexpr Step kSteps = 8;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Begin(3, seed % 2 == 0);
    const PhiloxBlock plan = Philox(seed, 1, 0);
    const Step removed_at = plan[0] % (2 * kSteps);
    for (Step step = 0; step < kSteps; ++step) {
      PushStep(step);
      std::vector<Letter> late;
      for (uint64_t round = 0; round < 6; ++round, now_ += milliseconds(200)) {
        std::vector<Letter> letters = std::exchange(late, {});
        std::ranges::move(Letters(), std::back_inserter(letters));
        for (size_t i = 0; i < letters.size(); ++i) {
          const PhiloxBlock bits = Philox(seed, 2 + step, 1000 * round + i);
          if (bits[0] % 4 == 0) continue;
          if (bits[1] % 4 == 0) late.push_back(letters[i]);
          if (bits[2] % 4 != 0) Deliver(letters[i]);
        }
      }
      if (step == removed_at) {
        Remove(1 + plan[1] % 3);
        for (SliceIndex slice = 0; slice < kSlices; ++slice) Push(step, slice);
        Advance(step + 1);
      }
      Settle();  // A step begins when all pushes of the one before are acknowledged.
    }
    ExpectAllHaveTheStepsBefore(kSteps);
  }
}

TEST_F(ChainLinksTest, TheOthersAgreeWithoutHeadMiddleOrTail) {
  for (const uint32_t lost : {1u, 2u, 3u}) {
    SCOPED_TRACE(testing::Message() << "without server " << lost);
    Begin(3);
    PushStep(0);
    Carry();
    Push(1, 0);  // The middle has it, the tail has not.
    for (const Letter& letter : LettersOf(Server(1))) Deliver(letter);
    Push(1, 1);  // Only the head has it.
    Remove(lost);
    Carry();
    for (const auto& [endpoint, server] : servers_) {
      EXPECT_EQ(server->shards.shards()[0].position(), lost == 1 ? 4u : 5u) << endpoint;
      EXPECT_EQ(server->links.kept_bytes(), 0u) << endpoint;
      EXPECT_TRUE(server->links.IsStable(ShardId(0), 5)) << endpoint;
    }
    for (SliceIndex slice = 0; slice < kSlices; ++slice) Push(1, slice);
    Advance(2);
    Carry();
    ExpectAllHaveTheStepsBefore(2);
  }
}

TEST_F(ChainLinksTest, TheLastMemberGoesOnAlone) {
  Begin(2);
  PushStep(0);
  Remove(2);
  EXPECT_FALSE(Server(1).links.active());
  EXPECT_EQ(Server(1).links.kept_bytes(), 0u);
  EXPECT_TRUE(IsStable(Last()));
  PushStep(1);
  ExpectAllHaveTheStepsBefore(2);
}

// A member that was removed and does not know it can acknowledge nothing, and nobody follows it.
TEST_F(ChainLinksTest, LettersOfAnotherVersionOfTheChainDoNotCount) {
  Begin(2);
  PushStep(0);
  for (const Letter& letter : LettersOf(Server(1))) Deliver(letter);
  const std::vector<Letter> acks = LettersOf(Server(2));
  map_.version = MapVersion(2);
  for (Chain& chain : map_.chains) chain.since = map_.version;
  Learn(Server(1));
  for (const Letter& letter : acks) Deliver(letter);
  EXPECT_FALSE(IsStable(1)) << "acknowledged by the older chain";
  Push(1, 0);
  const Position before = Server(2).shards.shards()[0].position();
  for (const Letter& letter : LettersOf(Server(1))) Deliver(letter);
  EXPECT_EQ(Server(2).shards.shards()[0].position(), before) << "records of the newer chain";
  Learn(Server(2));
  Push(1, 1);
  Advance(2);
  Settle();
  ExpectAllHaveTheStepsBefore(2);
}

TEST_F(ChainLinksTest, RecordsOfOthersAreNotFollowed) {
  const std::pair<const char*, std::function<void(RecordsRequest&)>> forgeries[] = {
      {"another generation", [](auto& m) { m.stamp.generation = Generation(2); }},
      {"for another server", [](auto& m) { m.stamp.server = ProcessId(3); }},
      {"from a server that is not the one before", [](auto& m) { m.from = ProcessId(3); }},
      {"from itself", [](auto& m) { m.from = ProcessId(2); }},
      {"an older chain", [](auto& m) { m.parts[0].since = MapVersion(0); }},
      {"a newer chain", [](auto& m) { m.parts[0].since = MapVersion(2); }},
  };
  for (const auto& [name, forge] : forgeries) {
    Begin(3);
    Push(0, 0);
    std::vector<Letter> letters = LettersOf(Server(1));
    ASSERT_EQ(letters.size(), 1u);
    DataRequest forged = Opened(letters[0]);
    const auto first = forged.records.parts[0];
    forge(forged.records);
    const bool one = forged.records.parts[0] != first;  // Only the first record is concerned.
    EXPECT_TRUE(Give(Server(2), std::move(forged)).ok()) << name;
    for (size_t s = 0; s < kLinkShards; ++s) {
      const Position want = one && s != 0 ? 1 : 0;
      EXPECT_EQ(Server(2).shards.shards()[s].position(), want) << name;
    }
    Deliver(letters[0]);
    EXPECT_EQ(Server(2).shards.shards()[0].position(), 1u) << name;
  }
}

TEST_F(ChainLinksTest, AcknowledgementsOfOthersDoNotCount) {
  const std::pair<const char*, std::function<void(AcksRequest&)>> forgeries[] = {
      {"another generation", [](auto& m) { m.stamp.generation = Generation(2); }},
      {"for another server", [](auto& m) { m.stamp.server = ProcessId(3); }},
      {"from a server that is not the next", [](auto& m) { m.from = ProcessId(3); }},
      {"of another chain", [](auto& m) { m.acks[0].since = MapVersion(2); }},
      {"of no shard", [](auto& m) { m.acks[0].shard = ShardId(kLinkShards); }},
      {"of nothing", [](auto& m) { m.acks[0].position = 0; }},
  };
  for (const auto& [name, forge] : forgeries) {
    Begin(3);
    Push(0, 0);
    const AcksRequest good{{Generation(1), ViewNumber(1), MapVersion(1), ProcessId(1)},
                           ProcessId(2),
                           0,
                           {{ShardId(0), MapVersion(1), 1}}};
    DataRequest request{.kind = DataRequest::Kind::kAcks, .acks = good};
    forge(request.acks);
    EXPECT_TRUE(Give(Server(1), request).ok()) << name;
    EXPECT_FALSE(IsStable(1)) << name;
    request.acks = good;
    EXPECT_TRUE(Give(Server(1), request).ok()) << name;
    EXPECT_TRUE(IsStable(1)) << name;
  }
}

TEST_F(ChainLinksTest, AcknowledgingMoreThanThereIsIsRefused) {
  Begin(2);
  Push(0, 0);
  DataRequest request{
      .kind = DataRequest::Kind::kAcks,
      .acks = {{Generation(1), ViewNumber(1), MapVersion(1), ProcessId(1)}, ProcessId(2), 0, {}}};
  request.acks.acks = {{ShardId(0), MapVersion(1), 2}};
  const Status refused = Give(Server(1), request);
  EXPECT_EQ(refused.code(), StatusCode::kOutOfRange);
  EXPECT_EQ(ToText(refused), "server 2 acknowledges record 2 of shard 0; 1 is the last");
  EXPECT_FALSE(IsStable(1));
}

// A request of a later step comes to the tail, which serves pulls; the head learns of it.
TEST_F(ChainLinksTest, ThatAStepIsCompleteIsPassedUpToTheHead) {
  Begin(3);
  for (SliceIndex slice = 0; slice < kSlices; ++slice) Push(0, slice);
  Carry();
  Server(3).shards.Advance(1);
  EXPECT_EQ(Server(3).shards.clock(), 0u) << "only the head makes records";
  EXPECT_FALSE(LettersOf(Server(3)).empty());  // They are lost.
  EXPECT_TRUE(LettersOf(Server(3)).empty());
  now_ += kFirstPause;
  Carry();
  for (const uint32_t id : {1u, 2u, 3u}) EXPECT_EQ(Server(id).shards.clock(), 1u) << id;
  ExpectAllHaveTheStepsBefore(1);
}

TEST_F(ChainLinksTest, AStepWithoutAllItsPushesIsNotPassedUp) {
  Begin(2);
  Push(0, 0);
  Carry();
  Server(2).shards.Advance(1);
  EXPECT_TRUE(LettersOf(Server(2)).empty());
  EXPECT_EQ(Server(1).shards.complete(), 0u);
}

TEST_F(ChainLinksTest, ShardsThatBeginAnewKeepNothing) {
  Begin(2);
  PushStep(0);
  EXPECT_GT(Server(1).links.kept_bytes(), 0u);
  for (const auto& [endpoint, server] : servers_) {
    server->shards.Reset(0, Generation(2));
    server->links.Reset(now_, server->shards);
  }
  EXPECT_EQ(Server(1).links.kept_bytes(), 0u);
  Carry();
  for (Step step = 0; step < 2; ++step) {
    PushStep(step);
    Carry();
  }
  ExpectAllHaveTheStepsBefore(2);
}

}  // namespace
}  // namespace dt::server
