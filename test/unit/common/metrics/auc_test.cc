// Goal: merged runs give exactly the AUC of the definition, and the average precision with the same
// digits for any sharing. Method: comparison with a loop over all pairs, and over all thresholds.
#include "common/metrics/auc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
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

// For each distinct score as a threshold, the precision times the gain in recall.
std::optional<double> ThresholdByThreshold(const std::vector<Sample>& samples) {
  const auto positive = [](const Sample& s) { return s.label == 1; };
  const auto positives = static_cast<double>(std::ranges::count_if(samples, positive));
  if (positives == 0) return std::nullopt;
  std::set<float> thresholds;
  for (const Sample& s : samples) thresholds.insert(s.score);
  double sum = 0, before = 0;
  for (auto at = thresholds.rbegin(); at != thresholds.rend(); ++at) {
    double taken = 0, right = 0;
    for (const Sample& s : samples) {
      if (s.score < *at) continue;
      taken += 1;
      right += s.label;
    }
    sum += (right - before) / positives * (right / taken);
    before = right;
  }
  return sum;
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
  for (int round = 0; round < 10000; ++round) {
    std::vector<Sample> samples(1 + random() % (round < 60 ? 200 : 30));
    const uint64_t distinct = 1 + random() % 40;  // Few distinct scores give many ties.
    for (Sample& s : samples) {
      s = {static_cast<float>(random() % distinct) - 3.5f, static_cast<uint8_t>(random() % 2)};
    }
    const std::optional<double> pr = ThresholdByThreshold(samples);
    std::optional<double> first;
    for (size_t count : {1, 2, 3}) {
      const auto runs = Share(samples, count);
      const Result<Auc> auc = MergedAuc(Views(runs));
      ASSERT_TRUE(auc.ok());
      ASSERT_TRUE(auc->exact);
      ASSERT_EQ(auc->value, PairByPair(samples)) << "seed " << kSeed << ", round " << round;
      ASSERT_EQ(auc->pr.has_value(), pr.has_value()) << "seed " << kSeed << ", round " << round;
      if (!pr.has_value()) continue;
      ASSERT_NEAR(*auc->pr, *pr, 1e-13) << "seed " << kSeed << ", round " << round;
      if (count == 1) first = auc->pr;
      ASSERT_EQ(auc->pr, first) << "the same digits";
    }
  }
}

TEST(Auc, NeedsBothClasses) {
  for (uint8_t label : {uint8_t{0}, uint8_t{1}}) {
    const auto runs = Share({{0.5f, label}, {1.0f, label}}, 1);
    EXPECT_EQ(MergedAuc(Views(runs))->value, std::nullopt);
    EXPECT_EQ(MergedAuc(Views(runs))->pr, label == 1 ? std::optional(1.0) : std::nullopt);
  }
  EXPECT_EQ(MergedAuc({})->value, std::nullopt);
  EXPECT_EQ(MergedAuc({})->pr, std::nullopt);
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
  const Auc bins = BinnedAuc(Views(runs)), exact = ExactAuc(Views(runs));
  EXPECT_NEAR(*bins.value, *exact.value, 1e-5);
  EXPECT_NEAR(*bins.pr, *exact.pr, 1e-4);
  EXPECT_FALSE(bins.exact);
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
