// Goal: columns get the constants of the statistics that the job names, and no others. Method: job
// files beside a file of statistics whose numbers are known.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/common/config/temp_job.h"

namespace dt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Statistics of a column whose quantiles per mille are i * i.
std::string Stats(const std::string& name, const std::string& numbers) {
  std::string quantiles = "0";
  for (int i = 1; i <= 1000; ++i) quantiles += " " + std::to_string(i * i);
  return R"({"train": {"columns": [{"name": ")" + name + R"(", "numbers": ")" + numbers +
         R"(", "mean": 2.5, "deviation": 0.5, "quantiles": ")" + quantiles + "\"}]}}";
}

class ColumnConstants : public ::testing::Test {
 protected:
  Result<JobConfig> Load(const std::string& stats, const std::string& column,
                         bool constants = true) const {
    folder_.Write("stats.json", stats);
    const std::string text = Replaced(Replaced(kGoodJob, "{name: price, fill: 0}", column),
                                      "  format: csv", "  stats: stats.json\n  format: csv");
    return LoadJob(folder_.Write("job.yaml", text), {.overrides = {}, .constants = constants});
  }
  ColumnSpec ColumnOf(const std::string& stats, const std::string& column) const {
    const Result<JobConfig> job = Load(stats, column);
    EXPECT_TRUE(job.ok()) << ToText(job.status());
    return job.ok() ? job->data.columns.back() : ColumnSpec();
  }
  std::string ProblemOf(const std::string& stats, const std::string& column) const {
    const Result<JobConfig> job = Load(stats, column);
    return job.ok() ? "no problem" : std::string(MessageOf(job.status()));
  }

  const TempDir folder_;
};

TEST_F(ColumnConstants, AreThoseOfTheFile) {
  const ColumnSpec column =
      ColumnOf(Stats("price", "price, clip [0, 9], log"),
               "{name: price, standardise: true, transform: log, clip: [0, 9]}");
  EXPECT_EQ(column.mean, 2.5f);
  EXPECT_EQ(column.deviation, 0.5f);
  EXPECT_TRUE(column.edges.empty());
}

TEST_F(ColumnConstants, QuantilesCutIntoEquallyManySamples) {
  const ColumnSpec column =
      ColumnOf(Stats("band", "price"),
               "{name: price}\n    - {name: band, from: price, type: id, quantiles: 4}");
  EXPECT_THAT(column.edges, ElementsAre(250 * 250, 500 * 500, 750 * 750));
}

TEST_F(ColumnConstants, BinsWithoutSamplesAreJoined) {
  std::string stats = Stats("price", "price");
  for (int i = 1; i < 600; ++i) {
    const std::string from = " " + std::to_string(i * i) + " ";
    stats.replace(stats.find(from), from.size(), " 0 ");
  }
  EXPECT_THAT(ColumnOf(stats, "{name: price, type: id, quantiles: 4}").edges,
              ElementsAre(600 * 600, 750 * 750))
      << "zeros have a bin of their own";
  for (int i = 600; i <= 1000; ++i) {
    const std::string from = (i < 1000 ? " " : "") + std::to_string(i * i);
    stats.replace(stats.find(from), from.size(), i < 1000 ? " 0" : "0");
  }
  EXPECT_THAT(ColumnOf(stats, "{name: price, type: id, quantiles: 4}").edges, ElementsAre())
      << "of a number that is always the same";
}

TEST_F(ColumnConstants, OtherStatisticsAreRefusedInOneSentence) {
  const std::string column = "{name: price, standardise: true}";
  EXPECT_THAT(ProblemOf(Stats("price", "price, log"), column),
              HasSubstr("job.yaml:12: data.columns.price.standardise: " + folder_.path() +
                        "/stats.json is of \"price, log\", and here it is \"price\": make it again "
                        "with dovetail data stats JOB.yaml --json > FILE"));
  EXPECT_THAT(ProblemOf(Stats("cost", "cost"), column),
              HasSubstr("stats.json has no numbers of this column: make it again"));
  EXPECT_THAT(ProblemOf("[]", column), HasSubstr("stats.json:1: found a list"));
  EXPECT_THAT(ProblemOf("{\"train\": {\"columns\": [{\"name\": \"price\", \"numbers\": "
                        "\"price\", \"missing\": 4}]}}",
                        column),
              HasSubstr("has no numbers of this column"));
}

TEST_F(ColumnConstants, AnAbsentFileIsAProblemOnlyWhereConstantsAreNeeded) {
  const std::string column = "{name: price, standardise: true}";
  ASSERT_TRUE(Load(Stats("price", "price"), column).ok());
  std::filesystem::remove(folder_.path() + "/stats.json");
  const std::string job = folder_.path() + "/job.yaml";
  EXPECT_THAT(MessageOf(LoadJob(job, {}).status()), HasSubstr("/stats.json"));
  EXPECT_TRUE(LoadJob(job, {.overrides = {}, .constants = false}).ok());
  EXPECT_TRUE(LoadJob(job, {.overrides = {"data.columns.price.standardise=false"}}).ok());
}

TEST_F(ColumnConstants, ATrainingGoesOnWithEqualOnesOnly) {
  const std::string column = "{name: price, standardise: true}";
  const Result<JobConfig> a = Load(Stats("price", "price"), column);
  const Result<JobConfig> b = Load(Replaced(Stats("price", "price"), "2.5", "2.75"), column);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE(a->resume_fingerprint, b->resume_fingerprint);
  EXPECT_THAT(a->resume_text, HasSubstr("\ndata.columns.price.standardise: true\n"
                                        "data.columns.price.constants: mean 2.5, deviation 0.5\n"));
  const Result<JobConfig> binned =
      Load(Stats("price", "price"), "{name: price, type: id, quantiles: 2}");
  ASSERT_TRUE(binned.ok());
  EXPECT_THAT(binned->resume_text, HasSubstr("\ndata.columns.price.quantiles: 2\n"
                                             "data.columns.price.constants: edges [250000]\n"));
}

}  // namespace
}  // namespace dt
