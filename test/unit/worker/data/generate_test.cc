#include "worker/data/generate.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/worker/data/data_files.h"
#include "worker/data/planted_model.h"

namespace dt::worker {
namespace {

GenerateTruth MustGenerate(const TempDir& dir, const std::string& name, uint64_t rows,
                           uint64_t seed, uint32_t threads) {
  TaskPool pool(threads);
  const auto truth = GenerateCriteo({.rows = rows, .seed = seed, .out_dir = dir.path(name)}, pool);
  EXPECT_TRUE(truth.ok()) << truth.status();
  return truth.value_or(GenerateTruth{});
}

TEST(Generate, FilesDependOnTheSeedAlone) {
  const TempDir dir;
  MustGenerate(dir, "a", 40007, 5, 1);
  MustGenerate(dir, "b", 40007, 5, 3);
  MustGenerate(dir, "c", 40007, 6, 3);
  for (const char* file : {"/train.tsv", "/valid.tsv", "/test.tsv", "/truth.json"}) {
    EXPECT_EQ(dir.Read(std::string("a") + file), dir.Read(std::string("b") + file)) << file;
    EXPECT_NE(dir.Read(std::string("a") + file), dir.Read(std::string("c") + file)) << file;
  }
}

TEST(Generate, SplitsAreReadByTheCriteoReader) {
  const TempDir dir;
  const GenerateTruth truth = MustGenerate(dir, "a", 1000, 1, 2);
  DataConfig config;
  config.format = DataFormat::kCriteo;
  config.train = {dir.path("a/train.tsv")};
  config.valid = {dir.path("a/valid.tsv")};
  config.test = {dir.path("a/test.tsv")};
  config.cache_dir = dir.path("cache");
  TaskPool pool(2);
  const struct {
    Split split;
    uint64_t rows, expected;
  } kSplits[] = {{Split::kTrain, truth.train.rows, 800},
                 {Split::kValid, truth.valid.rows, 100},
                 {Split::kTest, truth.test.rows, 100}};
  for (const auto& [split, rows, expected] : kSplits) {
    EXPECT_EQ(rows, expected);
    const auto data = Dataset::Open(config, split, pool);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ((*data)->rows(), expected);
  }
}

// All seeds give about equally hard data, because the parts of the model are scaled to fixed
// variances.
TEST(Generate, BestResultIsAsPlanned) {
  const TempDir dir;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const GenerateTruth truth = MustGenerate(dir, "a", 50000, seed, 2);
    EXPECT_NEAR(truth.train.auc, 0.795, 0.02) << seed;
    EXPECT_NEAR(truth.train.logloss, 0.455, 0.025) << seed;
    EXPECT_NEAR(truth.test.auc, truth.train.auc, 0.03) << seed;
  }
}

TEST(Generate, ProbabilitiesAreCalibrated) {
  const PlantedModel model(3, 1.0);
  double expected = 0, found = 0;
  int missing = 0, negative = 0;
  for (uint64_t row = 0; row < 50000; ++row) {
    const PlantedModel::Sample sample = model.Draw(row);
    expected += sample.probability;
    found += sample.label ? 1 : 0;
    for (const int64_t count : sample.counts) {
      missing += count == PlantedModel::kMissing ? 1 : 0;
      negative += count < 0 && count != PlantedModel::kMissing ? 1 : 0;
    }
  }
  EXPECT_NEAR(found / 50000, expected / 50000, 4 * std::sqrt(0.19 / 50000));
  EXPECT_NEAR(found / 50000, 0.25, 0.05);
  EXPECT_GT(missing, 0);
  EXPECT_GT(negative, 0);
}

TEST(Generate, OptionsOutOfRangeAreRefused) {
  TaskPool pool(1);
  EXPECT_EQ(MessageOf(GenerateCriteo({.rows = 3, .out_dir = "x"}, pool).status()),
            "rows: 3 found, at least 10 expected");
  EXPECT_EQ(MessageOf(GenerateCriteo({.out_dir = "x", .vocabulary = 0}, pool).status()),
            "vocabulary: 0 found, 0.01 to 100000 expected");
}

TEST(Generate, TruthFileIsJson) {
  const TempDir dir;
  MustGenerate(dir, "a", 2000, 1, 1);
  EXPECT_THAT(
      dir.Read("a/truth.json"),
      testing::MatchesRegex("\\{\"train\": \\{\"auc\": 0\\.[0-9]+, \"logloss\": 0\\.[0-9]+\\},\n"
                            " \"valid\": .*,\n \"test\": .*\\}\n"));
}

}  // namespace
}  // namespace dt::worker
