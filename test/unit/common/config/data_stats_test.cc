#include "common/config/data_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dt {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(DataStats, DistinctKeysOfTrainingColumnsAreRead) {
  const Result<DataStats> read = ParseDataStats(
      R"({"train": {"rows": 10, "columns": [
            {"name": "label", "numbers": "label", "missing": 10},
            {"name": "C1", "keys": 10, "distinct": 7, "per_row": 1.0},
            {"name": "tags", "keys": 30, "distinct": 12, "per_row": 3.0}]},
          "test": {"rows": 5, "columns": [{"name": "C1", "keys": 5, "distinct": 99}]}})",
      "stats.json");
  ASSERT_TRUE(read.ok()) << ToText(read.status());
  ASSERT_EQ(read->size(), 3u);
  EXPECT_EQ(read->at("C1").distinct, 7u);
  EXPECT_EQ(read->at("tags").distinct, 12u);
  EXPECT_EQ(read->at("label").distinct, 0u) << "it has numbers";
  EXPECT_EQ(read->at("label").mean, std::nullopt);
}

TEST(DataStats, NumbersAreRead) {
  std::string quantiles = "0";
  for (int i = 1; i <= 1000; ++i) quantiles += " " + std::to_string(i);
  const Result<DataStats> read = ParseDataStats(
      R"({"train": {"columns": [{"name": "I1", "numbers": "I1, log", "distinct": 5,
          "mean": 2.5, "deviation": 0.1, "quantiles": ")" +
          quantiles + "\"}]}}",
      "stats.json");
  ASSERT_TRUE(read.ok()) << ToText(read.status());
  const ColumnStats& stats = read->at("I1");
  EXPECT_EQ(stats.numbers, "I1, log");
  EXPECT_EQ(stats.mean, 2.5f);
  EXPECT_EQ(stats.deviation, 0.1f);
  EXPECT_EQ(stats.quantiles.at(1000), 1000.0f);
  EXPECT_EQ(stats.distinct, 0u) << "of numbers, not of keys";
}

TEST(DataStats, NumbersAreDescribedUpToTheirConstants) {
  ColumnSpec column{.name = "price"};
  EXPECT_EQ(NumbersText(column), "price");
  column.from = "cost";
  column.clip = {0, 2.5f};
  column.transform = "log";
  column.standardise = true;
  EXPECT_EQ(NumbersText(column), "cost, clip [0, 2.5], log");
}

TEST(DataStats, MistakesAreNamed) {
  const auto problems = [](const std::string& text) {
    return std::string(MessageOf(ParseDataStats(text, "stats.json").status()));
  };
  EXPECT_THAT(problems("[1, 2]"), HasSubstr("stats.json:1: found a list without train.columns"));
  EXPECT_THAT(problems("{\"valid\": {}}"), HasSubstr("what dovetail data stats --json prints"));
  EXPECT_THAT(problems("{\"train\": {\"columns\": [{\"distinct\": 3}]}}"),
              HasSubstr("found a column without a name"));
  EXPECT_THAT(problems("{\"train\": {\"columns\": [\n{\"name\": \"C1\", \"distinct\": many}]}}"),
              HasSubstr("stats.json:2: train.columns.distinct: found \"many\""));
  EXPECT_THAT(MessageOf(ReadDataStats("/nonexistent/stats.json").status()),
              HasSubstr("data.stats"));
  EXPECT_THAT(
      problems("{\"train\": {\"columns\": [{\"name\": \"x\", \"numbers\": \"x\", "
               "\"mean\": none, \"quantiles\": \"2 1\"}]}}"),
      AllOf(HasSubstr("stats.json:1: train.columns.mean: found \"none\""),
            HasSubstr("train.columns.quantiles: found \"2 1\", expected a text of 1001 numbers")));
}

}  // namespace
}  // namespace dt
