// Goal: statistics are those of the numbers and keys that are there, in bounded memory. Method: few
// rows whose figures are known, and many numbers that are more than the limits.
#include "worker/data/stats/split_stats.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config/data_stats.h"
#include "common/storage/json_file.h"
#include "test/unit/worker/data/data_files.h"
#include "worker/data/stats/number_summary.h"

namespace dt::worker {
namespace {

using testing::ElementsAre;

TEST(NumberSummary, DescribesTheNumbersThatAreThere) {
  NumberSummary numbers(100);
  for (const float value : {2.0f, NAN, 4.0f, -0.0f, 0.0f, NAN, 9.0f}) numbers.Add(value);
  EXPECT_EQ(numbers.missing(), 2u);
  EXPECT_EQ(numbers.count(), 5u);
  EXPECT_EQ(numbers.min(), 0);
  EXPECT_EQ(numbers.max(), 9);
  EXPECT_DOUBLE_EQ(numbers.mean(), 3);
  EXPECT_DOUBLE_EQ(numbers.deviation(), std::sqrt(56.0 / 5));
  EXPECT_EQ(numbers.distinct().count(), 4u);
  EXPECT_THAT(numbers.Quantiles(5), ElementsAre(0, 0, 2, 4, 9));
  EXPECT_THAT(numbers.Quantiles(3), ElementsAre(0, 2, 9));
}

TEST(NumberSummary, ManyNumbersAreSampled) {
  NumberSummary numbers(2000);
  for (int i = 0; i < 100000; ++i) numbers.Add(static_cast<float>(i * 7919 % 100000));
  const std::vector<float> quantiles = numbers.Quantiles(11);
  for (size_t i = 0; i <= 10; ++i) EXPECT_NEAR(quantiles[i], 1e4 * static_cast<double>(i), 5e3);
  EXPECT_EQ(numbers.max(), 99999);
  EXPECT_NEAR(numbers.mean(), 49999.5, 1e-6);
}

TEST(DistinctCount, IsExactUpToItsLimitAndCloseBeyond) {
  DistinctCount few(1000), many(1000);
  for (uint64_t i = 0; i < 3000; ++i) few.Add(i % 1000);
  EXPECT_TRUE(few.is_exact());
  EXPECT_EQ(few.count(), 1000u);
  for (uint64_t i = 0; i < 200000; ++i) many.Add(i % 100000);
  EXPECT_FALSE(many.is_exact());
  EXPECT_NEAR(static_cast<double>(many.count()), 1e5, 1.5e4);
}

class SplitStats : public testing::Test {
 protected:
  Json Of(std::string_view text, std::vector<ColumnSpec> columns) const {
    DataConfig config = ConfigFor(dir_, DataFormat::kCsv, text);
    config.columns = std::move(columns);
    TaskPool pool(2);
    Result<Json> stats = StatsOf(config, Split::kTrain, pool);
    EXPECT_TRUE(stats.ok()) << stats.status();
    return stats.ok() ? *std::move(stats) : Json();
  }

  const TempDir dir_;
};

TEST_F(SplitStats, KeysAndWhatIsMissing) {
  ColumnSpec tags = Column("tags", ColumnType::kIds), count = Column("count", ColumnType::kId);
  tags.length = 0;
  count.transform = "bucket";
  const Json stats =
      Of("user,city,tags,count\n1,a,1|2,\n2,,,5\n1,,2,5\n",
         {Column("user", ColumnType::kId), Column("city", ColumnType::kString), tags, count});
  EXPECT_EQ(stats["rows"], 3);
  EXPECT_EQ(
      stats["columns"],
      Json::array(
          {{{"name", "user"}, {"keys", 3}, {"distinct", 2}, {"per_row", 1.0}},
           {{"name", "city"}, {"keys", 3}, {"distinct", 2}, {"per_row", 1.0}, {"missing", 2}},
           {{"name", "tags"}, {"keys", 3}, {"distinct", 2}, {"per_row", 1.0}, {"missing", 1}},
           {{"name", "count"}, {"keys", 3}, {"distinct", 2}, {"per_row", 1.0}, {"missing", 1}}}));
}

// Numbers are those after clip and log, before they are standardised or cut, with constants that
// are not there yet. What is made from bins is left out.
TEST_F(SplitStats, NumbersUpToTheirConstants) {
  ColumnSpec x = Column("x", ColumnType::kFloat), band = Column("band", ColumnType::kId);
  x.clip = {0, 4};
  x.standardise = true;
  x.fill = 7;
  band.from = "x";
  band.quantiles = 3;
  ColumnSpec crossed = Column("both", ColumnType::kId);
  crossed.transform = "crossed";
  crossed.of = {"band", "user"};
  const Json stats = Of("x,user,click\n8,1,1\n,2,0\n2,3,1\n",
                        {x, band, crossed, Column("user", ColumnType::kId),
                         Column("click", ColumnType::kFloat, ColumnRole::kLabel)});
  ASSERT_EQ(stats["columns"].size(), 4u);
  const Json first = stats["columns"][0], second = stats["columns"][1];
  const std::string quantiles = second["quantiles"];
  EXPECT_EQ(std::ranges::count(quantiles, ' '), kQuantilePoints - 1);
  EXPECT_TRUE(quantiles.starts_with("2 2 ") && quantiles.ends_with(" 2 8")) << quantiles;
  EXPECT_EQ(first, Json({{"name", "x"},
                         {"numbers", "x, clip [0, 4]"},
                         {"missing", 1},
                         {"distinct", 2},
                         {"min", 2.0},
                         {"max", 4.0},
                         {"mean", 3.0},
                         {"deviation", 1.0}}));
  EXPECT_EQ(second["numbers"], "x");
  EXPECT_EQ(second["max"], 8.0);
  EXPECT_EQ(stats["columns"][2]["name"], "user");
}

TEST_F(SplitStats, ANumberThatIsNowhereHasNoMean) {
  const Json stats =
      Of("x,user\n,1\n,2\n", {Column("x", ColumnType::kFloat), Column("user", ColumnType::kId)});
  EXPECT_EQ(stats["columns"][0], Json({{"name", "x"}, {"numbers", "x"}, {"missing", 2}}));
}

TEST_F(SplitStats, EmptyCellsOfCriteoAreMissing) {
  std::string line = "1";
  for (int i = 0; i < 39; ++i) line += i == 0 ? "\t3" : "\t";
  TaskPool pool(2);
  const Result<Json> stats =
      StatsOf(ConfigFor(dir_, DataFormat::kCriteo, line + "\n"), Split::kTrain, pool);
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ(stats->at("columns")[1]["missing"], 0);
  EXPECT_EQ(stats->at("columns")[2]["missing"], 1);
}

TEST_F(SplitStats, TheReaderOfConstantsUnderstandsThem) {
  ColumnSpec x = Column("x", ColumnType::kFloat), band = Column("band", ColumnType::kId);
  x.standardise = true;
  band.from = "x";
  band.quantiles = 4;
  const Json stats = {
      {"train", Of("x,user\n0.1,1\n0.3,1\n", {x, band, Column("user", ColumnType::kId)})}};
  const Result<DataStats> read = ParseDataStats(PrintableJson(stats), "stats.json");
  ASSERT_TRUE(read.ok()) << ToText(read.status());
  EXPECT_FLOAT_EQ(*read->at("x").mean, 0.2f);
  EXPECT_EQ(read->at("band").quantiles.front(), 0.1f);
  EXPECT_EQ(read->at("band").quantiles.back(), 0.3f);
  EXPECT_EQ(read->at("user").distinct, 1u);
}

}  // namespace
}  // namespace dt::worker
