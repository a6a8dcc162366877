#include "common/rows/taken_rows.h"

#include <cstring>

#include <gtest/gtest.h>

#include "common/arrays/array_file.h"
#include "common/rows/file_rows.h"
#include "common/rows/row_record.h"
#include "test/support/scratch_folder.h"

namespace dt {
namespace {

const RowsHeader::Table kSaved{TableId(1), 2, 3, "item"};
constexpr float kFloats[] = {1.5f, -2.25f, 10, 11, 12};
constexpr Step kPushed = 900;

std::vector<std::byte> Record() {
  std::vector<std::byte> record(sizeof(kFloats) + sizeof(Step));
  std::memcpy(record.data(), kFloats, sizeof(kFloats));
  std::memcpy(record.data() + sizeof(kFloats), &kPushed, sizeof(Step));
  return record;
}

std::vector<float> FloatsOf(std::span<const std::byte> record, size_t count) {
  std::vector<float> floats(count);
  std::memcpy(floats.data(), record.data(), count * sizeof(float));
  return floats;
}

TEST(TakenRows, ARecordStaysAsItIs) {
  TakenRows rows({.table = kSaved, .keep_state = true, .steps_before = 1000});
  const auto taken = rows.Take(SavedValues(kSaved), Record());
  ASSERT_TRUE(taken.ok());
  EXPECT_TRUE(std::ranges::equal(*taken, Record()));
}

TEST(TakenRows, StateBeginsAnew) {
  const RowsHeader::Table other{TableId(1), 2, 1, "item"};
  TakenRows rows({.table = other, .initial_state = {0.5f}, .steps_before = 0});
  const auto taken = rows.Take(SavedValues(kSaved), Record());
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(FloatsOf(*taken, 3), (std::vector<float>{1.5f, -2.25f, 0.5f}));
  EXPECT_EQ(LastPushOf(*taken), 0u) << "steps of the other job do not count";
}

RowsHeader::Table WithMomentum(float l2) {
  RowsHeader::Table table = kSaved;
  OptimizerSpec momentum{.kind = OptimizerKind::kMomentum, .scope = UpdateScope::kDense};
  momentum.l2 = l2;
  table.missed = {momentum, kPushed + 2};
  return table;
}

// The row has the velocity 10, 11 and the rate 12, and has missed one step.
TEST(TakenRows, MissedUpdatesAreMadeUpForUnlessTheJobGoesOnWithThem) {
  const Step before = kPushed + 2;
  const SavedValues saved(WithMomentum(0));
  TakenRows same({.table = WithMomentum(0), .keep_state = true, .steps_before = before});
  const auto kept = same.Take(saved, Record());
  ASSERT_TRUE(kept.ok());
  EXPECT_TRUE(std::ranges::equal(*kept, Record()));

  TakenRows other({.table = WithMomentum(0.5f), .keep_state = true, .steps_before = before});
  const auto changed = other.Take(saved, Record());
  ASSERT_TRUE(changed.ok());
  EXPECT_FLOAT_EQ(FloatsOf(*changed, 3)[0], 1.5f - 12 * 0.9f * 10);
  EXPECT_FLOAT_EQ(FloatsOf(*changed, 3)[2], 0.9f * 10) << "the velocity";
  EXPECT_EQ(LastPushOf(*changed), before - 1) << "the job's first step is the next one";

  const RowsHeader::Table touched{TableId(1), 2, 0, "item"};
  TakenRows anew({.table = touched, .steps_before = before});
  const auto settled = anew.Take(saved, Record());
  ASSERT_TRUE(settled.ok());
  EXPECT_FLOAT_EQ(FloatsOf(*settled, 2)[0], 1.5f - 12 * 0.9f * 10);
  EXPECT_EQ(LastPushOf(*settled), before - 1) << "or l2 by gap would count those steps again";
}

TEST(TakenRows, ValuesChangeTheirFormat) {
  RowsHeader::Table half = kSaved;
  half.dtype = FloatFormat::kBf16;
  TakenRows to_half({.table = half, .keep_state = true, .steps_before = 1000});
  const auto halved = to_half.Take(SavedValues(kSaved), Record());
  ASSERT_TRUE(halved.ok());
  const std::vector<std::byte> record(halved->begin(), halved->end());
  EXPECT_EQ(record.size(), Record().size() - 4);
  TakenRows back({.table = kSaved, .keep_state = true, .steps_before = 1000});
  EXPECT_TRUE(std::ranges::equal(*back.Take(SavedValues(half), record), Record()))
      << "bf16 has these values";
}

TEST(TakenRows, ARecordOfAnotherSizeIsDamaged) {
  TakenRows rows({.table = kSaved, .keep_state = true});
  const std::vector<std::byte> record = Record();
  EXPECT_EQ(rows.Take(SavedValues(kSaved), std::span(record).first(8)).status().code(),
            StatusCode::kDataLoss);
}

TEST(CountsOf, KeepsTheSketchAlone) {
  const LifeState fields{.sketch_bytes = 3, .running_ns = 5, .expire_before = 7, .marks = 1};
  std::string state(reinterpret_cast<const char*>(&fields), sizeof(fields));
  state += "abc" + std::string(LifeState::kMarkBytes, 'm');
  const auto counts = CountsOf(state);
  ASSERT_TRUE(counts.ok()) << counts.status();
  const auto read = LifeStateOf(*counts);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->expire_before, 0u);
  EXPECT_TRUE(counts->ends_with("abc"));
  EXPECT_EQ(*CountsOf(""), "");
  EXPECT_FALSE(CountsOf("abc").ok());
}

// ------------------------------------------------------------ files

class FileRowsTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& prefix, std::vector<uint64_t> shape) {
    const std::string path = folder_ / "rows.safetensors";
    auto file = ArrayFile::Create(path, ArrayFormat::kSafetensors,
                                  {{prefix + "keys", ArraySpec::Type::kU64, {keys_.size()}},
                                   {prefix + "values", ArraySpec::Type::kF32, std::move(shape)}},
                                  {});
    EXPECT_TRUE((*file)->Append(0, std::as_bytes(std::span(keys_))).ok());
    EXPECT_TRUE((*file)->Append(1, std::as_bytes(std::span(values_))).ok());
    EXPECT_TRUE((*file)->Finish().ok());
    return path;
  }
  void SetUp() override {
    for (Key key = 0; key < 10'000; ++key) {
      keys_.push_back(key * 3);
      values_.insert(values_.end(), {static_cast<float>(key), -1.0f});
    }
  }
  const test::ScratchFolder folder_;
  std::vector<Key> keys_;
  std::vector<float> values_;
};

TEST_F(FileRowsTest, VisitsTheWantedRows) {
  for (const std::string prefix : {"", "table.item."}) {
    const auto rows = FileRows::Open(Write(prefix, {10'000, 2}), "item", 2);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(rows->rows(), 10'000u);
    Key visited = 0;
    const auto visit = [&](Key key, std::span<const float> values) {
      EXPECT_EQ(key % 6, 3u);
      EXPECT_EQ(values[0], static_cast<float>(key / 3));
      ++visited;
      return OkStatus();
    };
    ASSERT_TRUE(rows->ForEach([](Key key) { return key % 2 == 1; }, visit).ok());
    EXPECT_EQ(visited, 5'000u);
  }
}

TEST_F(FileRowsTest, AnotherShapeIsNamed) {
  const std::string path = Write("", {10'000, 2});
  const Status dim = FileRows::Open(path, "item", 3).status();
  EXPECT_EQ(MessageOf(dim),
            "keys have the shape [10000] and values [10000, 2]; table item needs [n] and [n, 3]");
  Write("table.user.", {10'000, 2});
  const Status none = FileRows::Open(path, "item", 2).status();
  EXPECT_EQ(MessageOf(none), "it has neither an array keys nor table.item.keys");
}

}  // namespace
}  // namespace dt
