#include "server/shard/shard_set.h"

#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "server/shard/checksum.h"
#include "test/support/push_maker.h"
#include "test/support/shard_sets.h"

namespace dt::server {
namespace {

using test::Grouping;
using test::RowMap;

const Stamp kStamp{Generation(2), ViewNumber(3), MapVersion(4), ProcessId(1)};

TableSpec WithFormats(TableSpec spec, FloatFormat wire, FloatFormat dtype) {
  spec.wire = wire;
  spec.dtype = dtype;
  return spec;
}
const std::vector<TableSpec> kTables = {
    test::SimpleTable("a", 3, OptimizerKind::kAdam),
    WithFormats(test::SimpleTable("b", 1, OptimizerKind::kAdagrad), FloatFormat::kFp16,
                FloatFormat::kFp32),
    WithFormats(test::SimpleTable("c", 5, OptimizerKind::kAdam), FloatFormat::kInt8,
                FloatFormat::kBf16),
    WithFormats(test::SimpleTable("d", 7, OptimizerKind::kSgd), FloatFormat::kBf16,
                FloatFormat::kBf16)};

ShardSetOptions OptionsOf(uint32_t shards_of_job, const std::vector<ShardId>& shards,
                          uint32_t slices = 1) {
  ShardSetOptions options = test::SetOf(kTables, slices, shards_of_job, shards);
  options.view.generation = kStamp.generation;
  options.view.number = kStamp.view;
  options.view.map.version = kStamp.map;
  return options;
}
ShardSet MakeSet(uint32_t shards_of_job, const std::vector<ShardId>& shards, uint32_t slices = 1) {
  return ShardSet(OptionsOf(shards_of_job, shards, slices));
}

PushRequest MakePush(const ShardSet& set, const RowMap& rows, Step step, SliceIndex slice = 0,
                     uint32_t slices = 1) {
  std::vector<ShardId> shards;
  for (const Shard& shard : set.shards()) shards.push_back(shard.id());
  const Grouping grouping(kTables, set.shards_of_job(), shards, rows);
  PushRequest push = grouping.Push(0, kStamp, step);
  push.slice = slice;
  push.slices = slices;
  push.gradients = test::EncodedRows(kTables, grouping.out_groups, grouping.floats);
  return push;
}

RowMap RandomRows(uint64_t seed, uint32_t count) {
  RowMap rows;
  for (uint32_t i = 0; i < count; ++i) {
    const PhiloxBlock bits = Philox(seed, 0, i);
    const uint32_t table = bits[0] % static_cast<uint32_t>(kTables.size());
    std::vector<float> gradient(kTables[table].dim);
    FillNormal(seed, i, gradient);
    rows[{table, bits[1] % 500}] = gradient;
  }
  return rows;
}

TEST(ShardSet, StampsAreComparedPartByPart) {
  const ShardSet set = MakeSet(4, test::AllShards(4));
  EXPECT_TRUE(set.CheckStamp(kStamp).ok());
  struct Case {
    Stamp stamp;
    StatusCode want;
  };
  const Generation generation(2);
  const ViewNumber view(3);
  const MapVersion map(4);
  const ProcessId self(1);
  const Case cases[] = {
      {{Generation(1), view, map, self}, StatusCode::kFailedPrecondition},
      {{generation, ViewNumber(2), map, self}, StatusCode::kFailedPrecondition},
      {{generation, view, map, ProcessId(2)}, StatusCode::kResourceExhausted},
      {{Generation(3), view, map, self}, StatusCode::kResourceExhausted},
      {{generation, ViewNumber(4), map, self}, StatusCode::kResourceExhausted},
      {{generation, view, MapVersion(5), self}, StatusCode::kResourceExhausted},
      // An older map is judged shard by shard.
      {{generation, view, MapVersion(3), self}, StatusCode::kOk},
  };
  for (const Case& c : cases) EXPECT_EQ(set.CheckStamp(c.stamp).code(), c.want);
}

// There are four shards, of which 1 and 3 are here. Shard 2 has left with map version 3, and shard
// 3 has come with version 4.
TEST(ShardSet, AShardIsRefusedToThoseWhoDoNotKnowItsChain) {
  ShardSetOptions options = OptionsOf(4, {ShardId(1), ShardId(3)});
  options.view.map.chains[2].since = MapVersion(3);
  options.view.map.chains[3].since = MapVersion(4);
  const ShardSet set(options);
  const auto refused = [&](uint64_t map, const std::vector<ShardId>& shards) {
    Stamp stamp = kStamp;
    stamp.map = MapVersion(map);
    return set.Refused(stamp, shards);
  };
  const std::vector<ShardId> asked = {ShardId(1), ShardId(2), ShardId(3)};
  EXPECT_EQ(*refused(2, asked), (std::vector{ShardId(2), ShardId(3)}));
  EXPECT_EQ(*refused(4, {{ShardId(1), ShardId(3)}}), std::vector<ShardId>());
  EXPECT_EQ(*refused(3, {{ShardId(1), ShardId(3)}}), std::vector<ShardId>{ShardId(3)});
  // Its map version should know that.
  EXPECT_EQ(refused(3, asked).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(refused(4, {{ShardId(4)}}).status().code(), StatusCode::kOutOfRange);
}

TEST(ShardSet, KeysMustBeWhereTheyBelong) {
  const ShardSet set = MakeSet(4, {ShardId(1), ShardId(3)});
  Key key = 0;
  while (ShardOf(kTables[0].id, key, 4) != ShardId(1)) ++key;
  const auto check = [&](uint32_t shard) {
    return set.CheckKeys(std::vector<KeyGroup>{{ShardId(shard), 0, 1}}, {&key, 1}).code();
  };
  EXPECT_EQ(check(1), StatusCode::kOk);
  EXPECT_EQ(check(3), StatusCode::kOutOfRange);
}

TEST(ShardSet, WhatIsRefusedIsNotTaken) {
  ShardSet set = MakeSet(4, test::AllShards(4));
  const std::vector<ShardId> refused = {ShardId(2)};
  ASSERT_TRUE(set.Push(MakePush(set, RandomRows(1, 50), 0), refused).ok());
  set.Advance(1);
  for (const Shard& shard : set.shards()) EXPECT_EQ(shard.now(), shard.id() == refused[0] ? 0 : 1);
  ASSERT_TRUE(set.Push(MakePush(set, RandomRows(1, 50), 0)).ok());
  set.Advance(1);
  EXPECT_EQ(set.clock(), 1u);
}

TEST(ShardSet, SlicesMustBeTheJobs) {
  const ShardSet set = MakeSet(2, test::AllShards(2), 2);
  EXPECT_TRUE(set.CheckSlices(2).ok());
  EXPECT_EQ(set.CheckSlices(3).code(), StatusCode::kOutOfRange);
}

TEST(ShardSet, PushOfTheNextStepImpliesThatTheLastIsComplete) {
  ShardSet set = MakeSet(2, test::AllShards(2));
  ASSERT_TRUE(set.Push(MakePush(set, RandomRows(1, 10), 0)).ok());
  EXPECT_EQ(set.clock(), 0u);
  ASSERT_TRUE(set.Push(MakePush(set, RandomRows(2, 10), 1)).ok());
  EXPECT_EQ(set.clock(), 1u);
}

TEST(ShardSet, PushTooEarlyChangesNothing) {
  ShardSet set = MakeSet(2, test::AllShards(2));
  const Status early = set.Push(MakePush(set, RandomRows(1, 10), 5));
  EXPECT_EQ(early.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(ToText(early).find("waits for every slice of step 0"), std::string::npos) << early;
  EXPECT_EQ(set.held_bytes(), 0u);
}

// A worker asks for step 2 only after step 1 was acknowledged.
TEST(ShardSet, ALogThatCameBackWithoutItsEndIsNamed) {
  ShardSet set = MakeSet(2, test::AllShards(2));
  ASSERT_TRUE(set.Push(MakePush(set, RandomRows(1, 10), 0)).ok());
  set.SetLogEnd("dir/log-0-1, byte 4711,");
  EXPECT_TRUE(set.Push(MakePush(set, RandomRows(2, 10), 0)).ok());
  EXPECT_TRUE(set.CheckNothingLost(1).ok());
  const Status lost = set.Push(MakePush(set, RandomRows(3, 10), 2));
  EXPECT_EQ(lost.code(), StatusCode::kDataLoss);
  EXPECT_NE(ToText(lost).find("dir/log-0-1, byte 4711, ends before"), std::string::npos) << lost;
  EXPECT_NE(ToText(lost).find("waits for every slice of step 1"), std::string::npos) << lost;
  EXPECT_EQ(set.CheckNothingLost(2), lost);
  EXPECT_TRUE(set.Push(MakePush(set, RandomRows(3, 10), 1)).ok());
  EXPECT_TRUE(set.CheckNothingLost(2).ok());
}

TEST(ShardSet, GatherGivesValuesInKeyOrderOverAllTables) {
  ShardSet set = MakeSet(8, test::AllShards(8));
  const RowMap rows = RandomRows(3, 100);
  ASSERT_TRUE(set.Push(MakePush(set, rows, 0)).ok());
  set.Advance(1);
  const Grouping grouping(kTables, 8, test::AllShards(8), rows);
  const Frame frame = set.Gather(PullMode::kTrain, grouping.out_groups, grouping.out_keys);
  std::vector<float> all = test::DecodedRows(kTables, grouping.out_groups, frame);
  std::span<const float> values = all;
  for (const auto& [table, key] : grouping.order) {
    const uint32_t dim = kTables[table].dim;
    std::vector<float> want(dim);
    const ShardId shard = ShardOf(kTables[table].id, key, 8);
    set.shards()[shard.value()].table(table).Pull({&key, 1}, want);
    const KeyGroup one{shard, table, 1};
    want = test::DecodedRows(kTables, {&one, 1}, test::EncodedRows(kTables, {&one, 1}, want));
    ASSERT_EQ(std::vector<float>(values.begin(), values.begin() + dim), want);
    values = values.subspan(dim);
  }
}

// Bits must be equal for the same pushes in another order of arrival, with another number of
// shards, in one or several sets.
TEST(ShardSet, BitsDependOnNeitherShardsNorArrival) {
  constexpr uint32_t kSlices = 4;
  const auto run = [&](uint32_t shards_of_job, uint32_t sets_count, bool backwards) {
    std::vector<ShardSet> sets;
    for (uint32_t i = 0; i < sets_count; ++i) {
      std::vector<ShardId> shards;
      for (uint32_t s = i; s < shards_of_job; s += sets_count) shards.emplace_back(s);
      sets.push_back(MakeSet(shards_of_job, shards, kSlices));
    }
    for (Step step = 0; step < 6; ++step) {
      for (uint32_t n = 0; n < kSlices; ++n) {
        const uint32_t slice = backwards ? kSlices - 1 - n : n;
        const RowMap rows = RandomRows(step * 100 + slice, 200);
        for (ShardSet& set : sets) {
          EXPECT_TRUE(set.Push(MakePush(set, rows, step, slice, kSlices)).ok());
          // The same message again.
          EXPECT_TRUE(set.Push(MakePush(set, rows, step, slice, kSlices)).ok());
        }
      }
    }
    auto total = ReportTables(kTables, {});
    for (ShardSet& set : sets) {
      set.Advance(6);
      EXPECT_EQ(set.clock(), 6u);
      AddReports(total, ReportTables(kTables, set.shards()));
    }
    return total;
  };
  const auto want = run(1, 1, false);
  EXPECT_GT(want[0].rows, 50u);
  EXPECT_NE(want[0].checksum_low, 0u);
  for (const auto& got : {run(1, 1, true), run(64, 1, false), run(64, 3, true), run(2, 2, false)}) {
    for (size_t t = 0; t < kTables.size(); ++t) {
      EXPECT_EQ(got[t].rows, want[t].rows);
      EXPECT_EQ(got[t].checksum_low, want[t].checksum_low);
      EXPECT_EQ(got[t].checksum_high, want[t].checksum_high);
    }
  }
}

// With gradient 1 and rate 1 a row counts the pushes that contained its key. They arrive in any
// order and repeatedly until they are acknowledged.
TEST(ShardSet, PushesOfWorkersApartCountOnceEach) {
  TableSpec counter = test::SimpleTable("a", 3);
  counter.init = {InitKind::kZeros, 0};
  ShardSetOptions options = OptionsOf(4, test::AllShards(4));
  options.tables = {counter, kTables[1]};
  options.staleness = 1;
  options.view.workers = {ProcessId(1), ProcessId(2)};
  ShardSet set(options);
  std::vector<PushRequest> unacknowledged;
  std::map<Key, float> pushes;
  for (uint32_t i = 0; i < 60; ++i) {
    RowMap rows;
    for (uint32_t k = 0; k < 5; ++k) rows[{0u, Philox(9, i, k)[0] % 40}] = {1, 1, 1};
    for (const auto& [at, gradient] : rows) pushes[at.second] += 1;
    PushRequest& push = unacknowledged.emplace_back(MakePush(set, rows, i / 2));
    push.turn = {options.view.workers[i % 2], {}, 0, i / 2, i / 2 + 1, 0};
    push.slice = i % 2;
    push.slices = 2;
  }
  for (uint32_t draw = 0; !unacknowledged.empty(); ++draw) {
    ASSERT_LT(draw, 100'000u);
    const PhiloxBlock bits = Philox(8, 1, draw);
    const auto at = unacknowledged.begin() + bits[0] % unacknowledged.size();
    const bool answer_lost = bits[1] % 3 == 0;
    if (set.Push(*at).ok() && !answer_lost) unacknowledged.erase(at);
  }
  EXPECT_EQ(set.clock(), 30u);
  EXPECT_TRUE(set.Reached(30));
  for (const auto& [key, count] : pushes) {
    std::vector<float> row(3);
    set.shards()[ShardOf(counter.id, key, 4).value()].table(0).Pull({&key, 1}, row);
    EXPECT_EQ(row, std::vector<float>(3, -count)) << key;
  }
}

TEST(ShardSet, ValuesAreSetWhereThereIsNoRow) {
  ShardSet set = MakeSet(4, test::AllShards(4));
  RowMap rows = {{{0u, 7}, {1, 2, 3}}};
  PushRequest push = MakePush(set, rows, 0);
  push.mode = PushMode::kSetAbsent;
  ASSERT_TRUE(set.Push(push).ok());
  rows[{0u, 7}] = {9, 9, 9};
  rows[{0u, 8}] = {4, 5, 6};
  push = MakePush(set, rows, 0);
  push.mode = PushMode::kSetAbsent;
  ASSERT_TRUE(set.Push(push).ok());
  const auto row = [&](Key key) {
    std::vector<float> values(3);
    set.shards()[ShardOf(kTables[0].id, key, 4).value()].table(0).Pull({&key, 1}, values);
    return values;
  };
  EXPECT_EQ(row(7), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(row(8), (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(set.clock(), 0u);
}

TEST(ShardSet, ShardsOfAMapGoToOneExecutorEach) {
  ShardMap map =
      MakeShardMap(MapVersion(1), 16, {{ProcessId(1), {"x", "y", "z"}}, {ProcessId(2), {"u"}}});
  std::vector<ShardId> all;
  for (uint32_t e = 0; e < 3; ++e) {
    const auto shards = ShardsOf(map, ProcessId(1), e, 3);
    all.insert(all.end(), shards.begin(), shards.end());
  }
  const auto other = ShardsOf(map, ProcessId(2), 0, 1);
  all.insert(all.end(), other.begin(), other.end());
  std::ranges::sort(all);
  EXPECT_EQ(all, test::AllShards(16));
  EXPECT_TRUE(ShardsOf(map, ProcessId(3), 0, 1).empty());
}

}  // namespace
}  // namespace dt::server
