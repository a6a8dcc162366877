// Goal: merged runs give exactly the AUC of the definition. Method: comparison with a loop over all
// pairs.
#include "common/metrics/auc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace dt {
namespace {

struct Sample {
  float score;
  uint8_t label;
};

struct Run {
  std::vector<float> scores;
  std::vector<uint8_t> labels;
};

std::optional<double> PairByPair(const std::vector<Sample>& samples) {
  double won = 0, pairs = 0;
  for (const Sample& p : samples) {
    for (const Sample& n : samples) {
      if (p.label != 1 || n.label != 0) continue;
      pairs += 1;
      won += p.score > n.score ? 1 : p.score == n.score ? 0.5 : 0;
    }
  }
  if (pairs == 0) return std::nullopt;
  return won / pairs;
}

// Divides the samples among `count` processes, each of which sorts its own.
std::vector<Run> Share(const std::vector<Sample>& samples, size_t count) {
  std::vector<std::vector<Sample>> parts(count);
  for (size_t i = 0; i < samples.size(); ++i) parts[i % count].push_back(samples[i]);
  std::vector<Run> runs(count);
  for (size_t r = 0; r < count; ++r) {
    std::stable_sort(parts[r].begin(), parts[r].end(),
                     [](const Sample& a, const Sample& b) { return a.score < b.score; });
    for (const Sample& s : parts[r]) {
      runs[r].scores.push_back(s.score);
      runs[r].labels.push_back(s.label);
    }
  }
  return runs;
}

std::vector<ScoreRun> Views(const std::vector<Run>& runs) {
  std::vector<ScoreRun> views;
  for (const Run& run : runs) views.push_back({run.scores, run.labels});
  return views;
}

TEST(Auc, EqualsTheCountOfPairsForAnySharing) {
  constexpr uint64_t kSeed = 7;
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 60; ++round) {
    std::vector<Sample> samples(1 + random() % 200);
    const uint64_t distinct = 1 + random() % 40;  // Few distinct scores give many ties.
    for (Sample& s : samples) {
      s = {static_cast<float>(random() % distinct) - 3.5f, static_cast<uint8_t>(random() % 2)};
    }
    for (size_t count : {1, 2, 5}) {
      const auto runs = Share(samples, count);
      const Result<Auc> auc = MergedAuc(Views(runs));
      ASSERT_TRUE(auc.ok());
      EXPECT_TRUE(auc->exact);
      EXPECT_EQ(auc->value, PairByPair(samples)) << "seed " << kSeed << ", round " << round;
    }
  }
}

TEST(Auc, NeedsBothClasses) {
  for (uint8_t label : {uint8_t{0}, uint8_t{1}}) {
    const auto runs = Share({{0.5f, label}, {1.0f, label}}, 1);
    EXPECT_EQ(MergedAuc(Views(runs))->value, std::nullopt);
  }
  EXPECT_EQ(MergedAuc({})->value, std::nullopt);
}

TEST(Auc, InfiniteScoresAndSignedZerosHaveTheirPlaces) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<Sample> samples = {{-kInf, 0}, {-0.0f, 1}, {0.0f, 0}, {kInf, 1}, {kInf, 0}};
  EXPECT_EQ(MergedAuc(Views(Share(samples, 2)))->value, PairByPair(samples));
}

TEST(Auc, BinsComeNear) {
  std::mt19937_64 random(11);
  std::normal_distribution<float> noise;
  std::vector<Sample> samples(20000);
  for (Sample& s : samples) {
    s.label = static_cast<uint8_t>(random() % 2);
    s.score = noise(random) + static_cast<float>(s.label);
  }
  const auto runs = Share(samples, 3);
  EXPECT_NEAR(*BinnedAuc(Views(runs)), *ExactAuc(Views(runs)), 1e-5);
}

TEST(Auc, BadRunsAreRefused) {
  const std::vector<float> falling = {1.0f, 0.0f}, nan = {0.0f, std::nanf("")}, good = {0, 1};
  const std::vector<uint8_t> labels = {0, 1}, other = {0, 2}, few = {0};
  for (const ScoreRun& run : {ScoreRun{falling, labels}, ScoreRun{nan, labels},
                              ScoreRun{good, other}, ScoreRun{good, few}}) {
    EXPECT_EQ(MergedAuc({&run, 1}).status().code(), StatusCode::kOutOfRange);
  }
}

}  // namespace
}  // namespace dt
