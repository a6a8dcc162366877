// Goal: negative items and frequencies are computed from a column as derived_column.h says, the
// same ones for any division of the samples into steps, slices and parts, and drawn anew in each
// epoch.
#include "worker/data/derived_column.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/worker/data/data_files.h"

namespace dt::worker {
namespace {

constexpr uint64_t kRows = 400;
constexpr uint32_t kDraws = 5;

// Item 1 has half of the rows, and items 10 … 19 share the others.
uint64_t ItemOf(uint64_t row) { return row % 2 == 0 ? 1 : 10 + row / 2 % 10; }

ColumnSpec Derived(const char* name, const char* transform) {
  const bool frequency = std::string_view(transform) == "log_frequency";
  ColumnSpec column = Column(name, frequency ? ColumnType::kFloat : ColumnType::kIds);
  column.length = frequency ? 1 : kDraws;
  column.transform = transform;
  column.of = {"item"};
  return column;
}

// Derived columns are the first in the job file, and the last of the data set.
DataConfig DerivedConfig(const TempDir& dir, const char* transform) {
  std::string text = "click,item\n";
  for (uint64_t row = 0; row < kRows; ++row) text += fmt::format("1,{}\n", ItemOf(row));
  DataConfig config = ConfigFor(dir, DataFormat::kCsv, text);
  config.valid = config.train;
  config.seed = 3;
  config.columns = {Derived("negatives", transform), Derived("log_q", "log_frequency"),
                    Column("click", ColumnType::kFloat, ColumnRole::kLabel),
                    Column("item", ColumnType::kId)};
  return config;
}

std::unique_ptr<Dataset> OpenDerived(const DataConfig& config, Split split = Split::kTrain) {
  TaskPool pool(1);
  auto data = Dataset::Open(config, split, pool);
  EXPECT_TRUE(data.ok()) << data.status();
  return data.ok() ? *std::move(data) : nullptr;
}

std::vector<Key> NegativesOf(const Dataset& data, uint64_t epoch,
                             const std::vector<uint64_t>& rows) {
  Batch batch;
  batch.epoch = epoch;
  EXPECT_TRUE(data.Gather(rows, batch).ok());
  return batch.columns[2].keys;
}

std::vector<uint64_t> EveryRow() {
  std::vector<uint64_t> rows(kRows);
  std::iota(rows.begin(), rows.end(), uint64_t{0});
  return rows;
}

TEST(DerivedColumns, ComeLastAndSeldomHoldTheSamplesOwnKey) {
  const TempDir dir;
  for (const char* transform : {"sampled_uniform", "sampled_unigram"}) {
    const auto data = OpenDerived(DerivedConfig(dir, transform));
    ASSERT_NE(data, nullptr);
    std::vector<std::string> names;
    for (const ColumnSpec& column : data->columns()) names.push_back(column.name);
    EXPECT_THAT(names, ::testing::ElementsAre("click", "item", "negatives", "log_q"));
    const std::vector<Key> keys = NegativesOf(*data, 0, EveryRow());
    ASSERT_EQ(keys.size(), kDraws * kRows);
    size_t own = 0;
    for (size_t i = 0; i < keys.size(); ++i) own += keys[i] == ItemOf(i / kDraws) ? 1 : 0;
    // Half of all unigram draws are item 1, so eight in a row are in 1 of 256.
    EXPECT_LE(own, 20u) << transform;
  }
}

TEST(DerivedColumns, KeysAreDrawnUniformlyOrByFrequency) {
  const TempDir dir;
  for (const bool uniform : {true, false}) {
    const auto data =
        OpenDerived(DerivedConfig(dir, uniform ? "sampled_uniform" : "sampled_unigram"));
    ASSERT_NE(data, nullptr);
    std::map<Key, double> share;
    double draws = 0;
    // Samples of item 10 have all other items as candidates.
    for (uint64_t epoch = 0; epoch < 400; ++epoch) {
      for (const Key key : NegativesOf(*data, epoch, {1, 21})) share[key] += 1, draws += 1;
    }
    EXPECT_EQ(share.size(), 10u);
    const double frequent = share[1] / draws, rare = share[15] / draws;
    EXPECT_NEAR(frequent, uniform ? 0.1 : 0.5 / 0.95, 0.025);
    EXPECT_NEAR(rare, uniform ? 0.1 : 0.05 / 0.95, 0.025);
  }
}

TEST(DerivedColumns, KeysDependOnSeedNameEpochAndRowOnly) {
  const TempDir dir;
  for (const char* transform : {"sampled_uniform", "sampled_unigram"}) {
    DataConfig config = DerivedConfig(dir, transform);
    const auto data = OpenDerived(config), again = OpenDerived(config);
    ASSERT_TRUE(data != nullptr && again != nullptr);
    const std::vector<Key> keys = NegativesOf(*data, 7, EveryRow());
    EXPECT_EQ(NegativesOf(*again, 7, EveryRow()), keys);
    EXPECT_NE(NegativesOf(*data, 8, EveryRow()), keys);
    // A row's keys do not depend on its step, its slice, or the rows around it.
    Batch batch;
    batch.epoch = 7, batch.step = 12, batch.slice = 3, batch.first_sample = 90;
    EXPECT_TRUE(data->Gather(std::vector<uint64_t>{300, 9}, batch).ok());
    EXPECT_TRUE(std::equal(keys.begin() + 300 * kDraws, keys.begin() + 301 * kDraws,
                           batch.columns[2].keys.begin()));
    EXPECT_TRUE(std::equal(keys.begin() + 9 * kDraws, keys.begin() + 10 * kDraws,
                           batch.columns[2].keys.begin() + kDraws));
    config.columns[0].name = "others";
    EXPECT_NE(NegativesOf(*OpenDerived(config), 7, EveryRow()), keys);
    config = DerivedConfig(dir, transform);
    config.seed = 4;
    EXPECT_NE(NegativesOf(*OpenDerived(config), 7, EveryRow()), keys);
  }
}

// A worker of a team has the ids of its own samples, and of columns that are rows those of all;
// numbers it has of all samples.
TEST(DerivedColumns, AWorkerOfATeamHasItsOwnKeys) {
  const TempDir dir;
  const auto data = OpenDerived(DerivedConfig(dir, "sampled_uniform"));
  ASSERT_NE(data, nullptr);
  const std::vector<uint64_t> rows = {9, 300, 4, 77};
  const std::vector<Key> all = NegativesOf(*data, 5, rows);
  Batch batch;
  batch.epoch = 5;
  batch.part = {1, 3};
  batch.whole_columns = {1, 2};
  EXPECT_TRUE(data->Gather(rows, batch).ok());
  EXPECT_EQ(batch.columns[2].keys,
            std::vector<Key>(all.begin() + kDraws, all.begin() + 3 * kDraws));
  EXPECT_EQ(batch.WithAll(2).keys, all);
  EXPECT_EQ(batch.WithAll(1).keys.size(), 4u);
  EXPECT_EQ(batch.columns[3].floats.size(), 4u);
}

TEST(DerivedColumns, LogFrequencyIsThatOfTheKeyInTheSplit) {
  const TempDir dir;
  DataConfig config = DerivedConfig(dir, "sampled_uniform");
  config.valid = {dir.Write("valid.csv", "click,item\n0,1\n1,77\n0,77\n1,77\n")};
  const Batch train = AllOf(*OpenDerived(config));
  const Batch valid = AllOf(*OpenDerived(config, Split::kValid));
  for (uint64_t row = 0; row < kRows; ++row) {
    EXPECT_EQ(train.columns[3].floats[row],
              static_cast<float>(std::log(ItemOf(row) == 1 ? 0.5 : 0.05)));
  }
  const float often = static_cast<float>(std::log(0.75));
  EXPECT_EQ(valid.columns[3].floats,
            (std::vector<float>{static_cast<float>(std::log(0.25)), often, often, often}));
}

TEST(DerivedColumns, ASplitWithoutFilesHasThem) {
  const TempDir dir;
  const auto none = OpenDerived(DerivedConfig(dir, "sampled_uniform"), Split::kTest);
  ASSERT_NE(none, nullptr);
  EXPECT_EQ(none->columns().size(), 4u);
  EXPECT_TRUE(NegativesOf(*none, 0, {}).empty());
}

TEST(DerivedColumns, AColumnOfOneKeyGivesThatKey) {
  const Key only[] = {8, 8, 8};
  const KeyColumn of = {reinterpret_cast<const std::byte*>(only), sizeof(Key), 3};
  for (const char* transform : {"sampled_uniform", "sampled_unigram"}) {
    const DerivedColumn column(Derived("negatives", transform), 1, of);
    BatchColumn out;
    out.keys.resize(2 * kDraws);
    column.Fill(1, std::vector<uint64_t>{0, 2}, out);
    EXPECT_THAT(out.keys, ::testing::Each(8u));
  }
}

}  // namespace
}  // namespace dt::worker
