// Goal: metrics of groups are those of the definitions in ranking.h, and do not depend on how the
// samples are distributed or ordered. Method: 10,000 random cases with ties, groups of one class
// and groups of one sample are compared with a loop over all orders of tied samples.
#include "common/metrics/ranking.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace dt {
namespace {

struct InGroup {
  Key group;
  float score;
  uint8_t label;
};
using AllSamples = std::vector<InGroup>;
using Labels = std::vector<uint8_t>;

struct GroupedSamples {
  std::vector<float> scores;
  Labels labels;
  std::vector<Key> groups;
};

// ---------------------------------------------------------------- the definitions

double PlainDcg(const Labels& ranked, uint32_t top_k) {
  double sum = 0;
  for (size_t i = 0; i < ranked.size() && i < top_k; ++i) {
    if (ranked[i] != 0) sum += 1 / std::log2(static_cast<double>(i + 2));
  }
  return sum;
}

// NDCG, recall, hit rate and reciprocal rank of one order.
struct OfOrder {
  double ndcg = 0, recall = 0, hit_rate = 0, mrr = 0;
};

OfOrder PlainOrder(const Labels& ranked, uint32_t top_k) {
  Labels best = ranked;
  std::ranges::sort(best, std::greater<>());
  OfOrder of{.ndcg = PlainDcg(ranked, top_k) / PlainDcg(best, top_k)};
  double found = 0, all = 0;
  for (size_t i = 0; i < ranked.size(); ++i) {
    if (ranked[i] == 0) continue;
    if (all == 0) of.mrr = 1 / static_cast<double>(i + 1);
    all += 1;
    found += i < top_k ? 1 : 0;
  }
  of.recall = found / all;
  of.hit_rate = found > 0 ? 1 : 0;
  return of;
}

// The labels of each score, the highest score first.
std::vector<Labels> TiesOf(const AllSamples& group) {
  std::map<float, Labels, std::greater<>> by_score;
  for (const InGroup& s : group) by_score[s.score].push_back(s.label);
  std::vector<Labels> ties;
  for (auto& [score, labels] : by_score) {
    std::ranges::sort(labels);
    ties.push_back(labels);
  }
  return ties;
}

// Goes to the next order of tied labels; false after the last.
bool NextOrder(std::vector<Labels>& ties) {
  return std::ranges::any_of(
      ties, [](Labels& tie) { return std::next_permutation(tie.begin(), tie.end()); });
}

// The mean over all orders of tied samples. Orders that differ only in samples of equal labels are
// counted once; each stands for equally many.
OfOrder PlainGroup(const AllSamples& group, uint32_t top_k) {
  std::vector<Labels> ties = TiesOf(group);
  OfOrder sum;
  double orders = 0;
  do {
    Labels ranked;
    for (const Labels& tie : ties) ranked.insert(ranked.end(), tie.begin(), tie.end());
    const OfOrder of = PlainOrder(ranked, top_k);
    sum.ndcg += of.ndcg, sum.recall += of.recall, sum.hit_rate += of.hit_rate, sum.mrr += of.mrr;
    orders += 1;
  } while (NextOrder(ties));
  return {sum.ndcg / orders, sum.recall / orders, sum.hit_rate / orders, sum.mrr / orders};
}

std::optional<double> PlainAuc(const AllSamples& group) {
  double won = 0, pairs = 0;
  for (const InGroup& p : group) {
    for (const InGroup& n : group) {
      if (p.label != 1 || n.label != 0) continue;
      pairs += 1;
      won += p.score > n.score ? 1 : p.score == n.score ? 0.5 : 0;
    }
  }
  return pairs == 0 ? std::nullopt : std::optional(won / pairs);
}

GroupMetrics Plain(const AllSamples& samples, uint32_t top_k) {
  std::map<Key, AllSamples> groups;
  for (const InGroup& s : samples) groups[s.group].push_back(s);
  double aucs = 0, weights = 0, count = 0;
  OfOrder sum;
  for (const auto& [key, group] : groups) {
    if (const auto auc = PlainAuc(group)) {
      aucs += static_cast<double>(group.size()) * *auc;
      weights += static_cast<double>(group.size());
    }
    if (std::ranges::none_of(group, [](const InGroup& s) { return s.label == 1; })) continue;
    const OfOrder of = PlainGroup(group, top_k);
    sum.ndcg += of.ndcg, sum.recall += of.recall, sum.hit_rate += of.hit_rate, sum.mrr += of.mrr;
    count += 1;
  }
  GroupMetrics metrics;
  if (weights > 0) metrics.gauc = aucs / weights;
  if (count == 0) return metrics;
  metrics.ndcg = sum.ndcg / count, metrics.recall = sum.recall / count;
  metrics.hit_rate = sum.hit_rate / count, metrics.mrr = sum.mrr / count;
  return metrics;
}

// ---------------------------------------------------------------- the cases

// Divides the samples among `count` processes.
GroupMetrics Shared(const AllSamples& samples, size_t count, uint32_t top_k) {
  std::vector<GroupedSamples> runs(count);
  for (size_t i = 0; i < samples.size(); ++i) {
    GroupedSamples& run = runs[i * 7 % count];
    run.scores.push_back(samples[i].score);
    run.labels.push_back(samples[i].label);
    run.groups.push_back(samples[i].group);
  }
  std::vector<GroupedRun> views;
  for (const GroupedSamples& run : runs) views.push_back({{run.scores, run.labels}, run.groups});
  return MergedGroupMetrics(views, top_k);
}

AllSamples RandomSamples(std::mt19937_64& random) {
  AllSamples samples;
  const size_t groups = 1 + random() % 6;
  const uint64_t distinct = 1 + random() % 12;  // Few distinct scores give many ties.
  for (size_t g = 0; g < groups; ++g) {
    const Key key = random() % 3 == 0 ? ~uint64_t{g} : g;
    const uint64_t positive = random() % 5;  // In 4; 0 and 4 give groups of one class.
    for (size_t i = random() % 9; i > 0; --i) {
      samples.push_back({key, static_cast<float>(random() % distinct) - 3.5f,
                         static_cast<uint8_t>(random() % 4 < positive ? 1 : 0)});
    }
  }
  std::ranges::shuffle(samples, random);
  return samples;
}

void ExpectNear(const std::optional<double>& a, const std::optional<double>& b) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (a.has_value()) {
    ASSERT_NEAR(*a, *b, 1e-12);
  }
}

TEST(Ranking, EqualsItsDefinitionsForAnySharing) {
  constexpr uint64_t kSeed = 17;
  std::mt19937_64 random(kSeed);
  size_t present = 0;
  for (int round = 0; round < 10000; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", round " << round);
    AllSamples samples = RandomSamples(random);
    const auto top_k = static_cast<uint32_t>(1 + random() % 10);
    const GroupMetrics one = Shared(samples, 1, top_k), want = Plain(samples, top_k);
    ExpectNear(one.gauc, want.gauc);
    ExpectNear(one.ndcg, want.ndcg);
    ExpectNear(one.recall, want.recall);
    ExpectNear(one.hit_rate, want.hit_rate);
    ExpectNear(one.mrr, want.mrr);
    if (HasFatalFailure()) return;
    present += one.gauc.has_value() ? 1 : 0;
    std::ranges::shuffle(samples, random);
    for (const size_t processes : {2, 3}) {
      ASSERT_EQ(Shared(samples, processes, top_k), one) << "the same digits";
    }
  }
  EXPECT_GT(present, 5000u);
  EXPECT_LT(present, 10000u);
}

TEST(Ranking, APerfectOrderGivesExactlyOne) {
  AllSamples samples;
  for (Key group = 0; group < 20; ++group) {
    for (int i = 0; i < 40; ++i) {
      samples.push_back({group, static_cast<float>(i < 7 ? 100 - i : -i), uint8_t(i < 7 ? 1 : 0)});
    }
  }
  const GroupMetrics metrics = Shared(samples, 3, 10);
  EXPECT_EQ(metrics, (GroupMetrics{1.0, 1.0, 1.0, 1.0, 1.0}));
  EXPECT_NEAR(*Shared(samples, 3, 4).recall, 4.0 / 7, 1e-15);
  EXPECT_EQ(*Shared(samples, 3, 4).ndcg, 1.0);
}

TEST(Ranking, WithoutAGroupThatCountsThereIsNoNumber) {
  EXPECT_EQ(MergedGroupMetrics({}, 10), GroupMetrics());
  EXPECT_EQ(Shared({{1, 0.5f, 0}, {2, 0.5f, 0}}, 1, 10), GroupMetrics());
  const GroupMetrics positive = Shared({{1, 0.5f, 1}, {2, 0.5f, 0}}, 1, 10);
  EXPECT_EQ(positive.gauc, std::nullopt) << "both groups are of one class";
  EXPECT_EQ(positive.ndcg, 1.0) << "only the first group counts";
}

TEST(Ranking, SignedZerosTieAndLargeTiesAreMeans) {
  EXPECT_EQ(Shared({{1, 0.0f, 1}, {1, -0.0f, 0}}, 1, 1).hit_rate, 0.5);
  AllSamples samples(1000, {5, 0.25f, 0});
  samples[3].label = 1;
  double reciprocal = 0;
  for (int rank = 1; rank <= 1000; ++rank) reciprocal += 1.0 / rank / 1000;
  EXPECT_NEAR(*Shared(samples, 1, 10).mrr, reciprocal, 1e-12);
  EXPECT_NEAR(*Shared(samples, 1, 10).hit_rate, 0.01, 1e-12);
}

TEST(Ranking, AGroupsWeightInGaucIsItsSamples) {
  const AllSamples samples = {{1, 2, 1}, {1, 1, 0}, {2, 1, 1}, {2, 2, 0},
                              {2, 3, 0}, {2, 4, 0}, {2, 5, 0}, {2, 6, 0}};
  EXPECT_DOUBLE_EQ(*Shared(samples, 2, 10).gauc, 2.0 / 8);
}

}  // namespace
}  // namespace dt
