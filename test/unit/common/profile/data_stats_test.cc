#include "common/profile/data_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(DataStats, DistinctKeysOfTrainingColumnsAreRead) {
  const Result<DataStats> read = ParseDataStats(
      R"({"train": {"rows": 10, "columns": [
            {"name": "label", "mean": 0.5},
            {"name": "C1", "keys": 10, "distinct": 7, "per_row": 1.0},
            {"name": "tags", "keys": 30, "distinct": 12, "per_row": 3.0}]},
          "test": {"rows": 5, "columns": [{"name": "C1", "keys": 5, "distinct": 99}]}})",
      "stats.json");
  ASSERT_TRUE(read.ok()) << ToText(read.status());
  EXPECT_THAT(*read, ElementsAre(Pair("C1", 7u), Pair("tags", 12u)));
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
              HasSubstr("parallel.data_stats"));
}

}  // namespace
}  // namespace dt
