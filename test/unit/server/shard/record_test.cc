// Goal: shards that follow the records of others have the same bits, whatever led to the records;
// bytes that are no record are refused. Method: random pushes in wrong order, doubled and late, to
// synchronous and asynchronous shards whose rows are admitted and expire, followed by other shards
// through bytes; written-out mistakes; every cut and every changed byte of a record.
#include "server/shard/record.h"

#include <algorithm>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "server/shard/checksum.h"
#include "test/support/push_maker.h"
#include "test/support/record_list.h"
#include "test/support/shard_sets.h"

namespace dt::server {
namespace {

using test::Grouping;
using test::RecordList;
using test::RowMap;
using ::testing::HasSubstr;

constexpr uint32_t kShards = 4, kWorkers = 2;

std::vector<TableSpec> RecordTables() {
  TableSpec plain = test::SimpleTable("a", 3, OptimizerKind::kAdam);
  TableSpec counted = test::SimpleTable("b", 2, OptimizerKind::kAdagrad);
  counted.wire = FloatFormat::kFp16;
  counted.life = {.admission_pushes = 2, .sketch_bytes = 1 << 10, .expiry_steps = 5};
  TableSpec timed = test::SimpleTable("c", 1);
  timed.life = {.expiry_time = seconds(20)};
  return {plain, counted, timed};
}
const std::vector<TableSpec> kRecordTables = RecordTables();

ShardSet MakeRecordSet(std::optional<Step> staleness) {
  ShardSetOptions options =
      test::SetOf(kRecordTables, staleness ? 1 : 2, kShards, test::AllShards(kShards));
  options.staleness = staleness;
  for (uint32_t w = 1; w <= kWorkers; ++w) options.view.workers.emplace_back(w);
  return ShardSet(std::move(options));
}

// The push of slice w - 1 of a synchronous step, or of worker w.
PushRequest PushOf(const ShardSet& set, uint32_t w, Step step) {
  RowMap rows;
  for (uint32_t i = 0; i < 12; ++i) {
    const PhiloxBlock bits = Philox(w, step, i);
    const uint32_t table = bits[0] % static_cast<uint32_t>(kRecordTables.size());
    std::vector<float> gradient(kRecordTables[table].dim);
    FillNormal(bits[2], i, gradient);
    rows[{table, bits[1] % 40}] = gradient;
  }
  const Grouping grouping(kRecordTables, kShards, test::AllShards(kShards), rows);
  PushRequest push = grouping.Push(0, test::kFirstStamp, step);
  push.gradients = test::EncodedRows(kRecordTables, grouping.out_groups, grouping.floats);
  if (set.asynchronous()) push.turn = {ProcessId(w), {}, 0, step, step + 1, 0};
  push.slice = w - 1;
  push.slices = 2;
  return push;
}

void ExpectSameState(const ShardSet& a, const ShardSet& b) {
  const auto x = ReportTables(kRecordTables, a.shards()),
             y = ReportTables(kRecordTables, b.shards());
  for (size_t t = 0; t < kRecordTables.size(); ++t) {
    EXPECT_EQ(x[t].checksum_low, y[t].checksum_low) << kRecordTables[t].name;
    EXPECT_EQ(x[t].checksum_high, y[t].checksum_high) << kRecordTables[t].name;
    EXPECT_EQ(x[t].rows, y[t].rows) << kRecordTables[t].name;
  }
  for (size_t s = 0; s < kShards; ++s) {
    EXPECT_EQ(a.shards()[s].position(), b.shards()[s].position());
    EXPECT_EQ(a.shards()[s].now(), b.shards()[s].now());
    EXPECT_EQ(a.shards()[s].clock().Missing(), b.shards()[s].clock().Missing());
    for (uint32_t t = 0; t < kRecordTables.size(); ++t) {
      EXPECT_EQ(a.shards()[s].table(t).LifeState(), b.shards()[s].table(t).LifeState());
    }
  }
}

// Two workers that may be `ahead` steps apart send their pushes again and again; time passes.
void TellAStory(uint64_t seed, ShardSet& set, Step ahead) {
  constexpr Step kSteps = 30;
  Step next[kWorkers + 1] = {};
  for (uint64_t draw = 0; next[1] < kSteps || next[2] < kSteps; ++draw) {
    ASSERT_LT(draw, 100'000u);
    const PhiloxBlock bits = Philox(seed, 7, draw);
    const uint32_t w = 1 + bits[0] % kWorkers;
    set.PassTime(milliseconds(bits[1] % 500));
    if (bits[1] % 8 == 0) {
      PushRequest first = PushOf(set, w, next[w]);
      first.mode = PushMode::kSetAbsent;
      ASSERT_TRUE(set.Push(std::move(first)).ok());
    }
    const Step limit = std::min(next[1], next[2]) + ahead;
    Step step = next[w];
    if (bits[2] % 4 == 0 && step > 0) step -= 1;                      // Once more.
    if (bits[2] % 4 == 1 && set.asynchronous()) step += bits[3] % 3;  // Too early.
    if (step >= kSteps || step > limit) continue;
    const bool taken = set.Push(PushOf(set, w, step)).ok();
    next[w] = std::max(next[w], taken ? step + 1 : 0);
  }
  set.Advance(kSteps);
}

class Following : public ::testing::TestWithParam<std::optional<Step>> {};

TEST_P(Following, GivesTheSameBits) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    ShardSet head = MakeRecordSet(GetParam()), follower = MakeRecordSet(GetParam()),
             late = MakeRecordSet(GetParam());
    RecordList records;
    head.RecordTo(&records);
    TellAStory(seed, head, GetParam() == std::nullopt ? 0 : 3);
    EXPECT_GT(records.size(), 100u);
    ASSERT_TRUE(records.Follow(follower, 0, records.size()).ok());
    ExpectSameState(head, follower);
    // One that has some of the records is given all of them.
    ASSERT_TRUE(records.Follow(late, 0, records.size() / 2).ok());
    const Status followed = records.Follow(late, 0, records.size());
    ASSERT_TRUE(followed.ok()) << followed;
    ExpectSameState(head, late);
  }
}

// A follower records what it applies, with the same numbers.
TEST_P(Following, PassesTheSameRecordsOn) {
  ShardSet head = MakeRecordSet(GetParam()), follower = MakeRecordSet(GetParam());
  RecordList records, passed_on;
  head.RecordTo(&records);
  follower.RecordTo(&passed_on);
  TellAStory(1, head, 0);
  ASSERT_TRUE(records.Follow(follower, 0, records.size()).ok());
  ASSERT_EQ(passed_on.size(), records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(records[i].head.bytes(), passed_on[i].head.bytes())) << i;
    EXPECT_TRUE(std::ranges::equal(records[i].keys.bytes(), passed_on[i].keys.bytes())) << i;
    EXPECT_TRUE(std::ranges::equal(records[i].gradients.bytes(), passed_on[i].gradients.bytes()));
  }
}

std::string NameOfCase(const ::testing::TestParamInfo<std::optional<Step>>& info) {
  if (!info.param.has_value()) return "Synchronous";
  return *info.param == 3 ? "Bounded" : "Unbounded";
}

INSTANTIATE_TEST_SUITE_P(All, Following,
                         ::testing::Values(std::nullopt, Step{3}, kUnboundedStaleness), NameOfCase);

TEST(Records, OnlyTheNextOneThatFitsIsFollowed) {
  ShardSet head = MakeRecordSet(std::nullopt);
  RecordList records;
  head.RecordTo(&records);
  for (uint32_t w = 1; w <= 2; ++w) ASSERT_TRUE(head.Push(PushOf(head, w, 0)).ok());
  head.Advance(1);
  ASSERT_EQ(records.size(), 3 * kShards);
  const auto of_shard_0 = [&](int nth) {
    Result<ShardRecord> record = records.Decoded(static_cast<size_t>(nth) * kShards, head);
    EXPECT_EQ(record->shard, ShardId(0));
    return std::move(record->record);
  };
  ShardSet follower = MakeRecordSet(std::nullopt);
  const auto problem_of = [&](uint32_t shard, Record record) {
    const Status status = follower.Follow(ShardId(shard), std::move(record));
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    return ToText(status);
  };
  EXPECT_THAT(problem_of(0, of_shard_0(1)), HasSubstr("record 2 of shard 0: 1 is the next"));
  EXPECT_THAT(problem_of(9, of_shard_0(0)), HasSubstr("shard 9, which is not here"));
  ASSERT_TRUE(follower.Follow(ShardId(0), of_shard_0(0)).ok());
  EXPECT_TRUE(follower.Follow(ShardId(0), of_shard_0(0)).ok()) << "it has it already";
  Record again = of_shard_0(0);
  again.position = 2;
  EXPECT_THAT(problem_of(0, again), HasSubstr("record 2 of shard 0: it changes nothing"));
  Record complete = of_shard_0(2);
  complete.position = 2;
  EXPECT_THAT(problem_of(0, complete), HasSubstr("step 0 is complete, while 0 is next"));
  EXPECT_EQ(follower.Find(ShardId(0))->position(), 1u);
}

TEST(Records, BytesThatAreNoRecordAreRefused) {
  ShardSet head = MakeRecordSet(std::nullopt);
  RecordList records;
  head.RecordTo(&records);
  ASSERT_TRUE(head.Push(PushOf(head, 1, 0)).ok());
  const auto decode = [&](const Frame& a, const Frame& b, const Frame& c) {
    return DecodeRecord(a, b, c, kRecordTables, kShards).status();
  };
  for (size_t i = 0; i < records.size(); ++i) {
    const auto& [bytes, keys, gradients] = records[i];
    ASSERT_TRUE(decode(bytes, keys, gradients).ok());
    for (size_t size = 0; size < bytes.size(); ++size) {
      const Frame cut = Frame::CopyOf(bytes.bytes().first(size));
      EXPECT_EQ(decode(cut, keys, gradients).code(), StatusCode::kOutOfRange) << size;
    }
    if (keys.size() == 0) continue;
    const Frame fewer = Frame::CopyOf(keys.bytes().first(keys.size() - 8));
    EXPECT_EQ(decode(bytes, fewer, gradients).code(), StatusCode::kOutOfRange);
    EXPECT_EQ(decode(bytes, keys, Frame()).code(), StatusCode::kOutOfRange);
    const Frame other = Frame::CopyOf(keys.bytes());
    EXPECT_EQ(decode(records[(i + 1) % kShards].head, other, gradients).code(),
              StatusCode::kOutOfRange);
  }
}

// Any byte may be wrong; what is decoded nevertheless can be followed or is refused.
TEST_P(Following, AnyChangedByteIsHarmless) {
  ShardSet head = MakeRecordSet(GetParam());
  RecordList records;
  head.RecordTo(&records);
  TellAStory(2, head, 0);
  for (size_t i = 0; i < records.size(); i += 17) {
    const std::span<const std::byte> bytes = records[i].head.bytes();
    for (size_t at = 0; at < bytes.size(); ++at) {
      Frame changed = Frame::CopyOf(bytes);
      changed.bytes()[at] ^= std::byte{0x81};
      Result<ShardRecord> record =
          DecodeRecord(changed, records[i].keys, records[i].gradients, kRecordTables, kShards);
      if (!record.ok()) continue;
      ShardSet follower = MakeRecordSet(GetParam());
      ASSERT_TRUE(records.Follow(follower, 0, i).ok());
      follower.Follow(record->shard, std::move(record->record)).IgnoreError();
    }
  }
}

}  // namespace
}  // namespace dt::server
