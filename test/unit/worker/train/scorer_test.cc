// Method: comparison with the formulas in float64, computed sample by sample.
#include "worker/train/scorer.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/scratch_folder.h"

namespace dt::worker {
namespace {

Graph TwoLosses() {
  Graph graph;
  graph.losses = {{.name = "click", .type = "binary_cross_entropy", .label_column = 0},
                  {.name = "price", .type = "mse", .label_column = 1}};
  return graph;
}

Batch Labels(uint64_t first, std::vector<float> clicks) {
  Batch batch;
  batch.samples = static_cast<uint32_t>(clicks.size());
  batch.first_sample = first;
  batch.columns.resize(2);
  batch.columns[1].floats.assign(clicks.size(), 1.0f);
  batch.columns[0].floats = std::move(clicks);
  return batch;
}

TEST(ScorerTest, SumsAreTheFormulasAndScoresAscend) {
  const Graph graph = TwoLosses();
  auto scorer = Scorer::Open(graph, "", {});
  ASSERT_TRUE(scorer.ok());
  const std::vector<float> logits = {0.5f, -2.0f, 20.0f, -20.0f, 0.0f, -0.0f}, prices(6, 1.0f);
  const Batch batch = Labels(0, {1, 1, 0, 0, 0, 1});
  const std::vector<std::span<const float>> outputs = {logits, prices};
  ASSERT_TRUE(scorer->Add(4, batch, outputs).ok());
  const auto done = scorer->Finish();
  ASSERT_TRUE(done.ok());
  ASSERT_EQ(done->losses[0].parts.size(), 1);
  double loss = 0, predictions = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double p = 1 / (1 + std::exp(-double{logits[i]}));
    loss -= batch.columns[0].floats[i] != 0 ? std::log(p) : std::log1p(-p);
    predictions += p;
  }
  EXPECT_EQ(done->losses[0].parts[0].batch, 4);
  EXPECT_EQ(done->losses[0].parts[0].samples, 6);
  // The bound allows for log1p(-p), which loses digits at 20.
  EXPECT_NEAR(done->losses[0].parts[0].loss_sum, loss, 1e-6);
  EXPECT_NEAR(done->losses[0].parts[0].prediction_sum, predictions, 1e-12);
  EXPECT_EQ(done->losses[0].parts[0].label_sum, 3);
  EXPECT_EQ(done->losses[0].scores, (std::vector<float>{-20, -2, 0, 0, 0.5, 20}));
  EXPECT_EQ(done->losses[0].labels, (std::vector<uint8_t>{0, 1, 0, 1, 1, 0}));
}

TEST(ScorerTest, GroupsFollowTheirScores) {
  Graph graph = TwoLosses();
  graph.losses[0].group_column = 2;
  auto scorer = Scorer::Open(graph, "", {});
  ASSERT_TRUE(scorer.ok());
  const std::vector<float> logits = {0.5f, -2.0f, 0.5f, 0.25f}, prices(4, 1.0f);
  const std::vector<std::span<const float>> outputs = {logits, prices};
  Batch batch = Labels(0, {1, 0, 0, std::nanf("")});
  batch.columns.resize(3);
  batch.columns[2].keys = {30, ~0ull, 10, 20};
  ASSERT_TRUE(scorer->Add(0, batch, outputs).ok());
  const auto done = scorer->Finish();
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->losses[0].scores, (std::vector<float>{-2, 0.5, 0.5}));
  EXPECT_EQ(done->losses[0].labels, (std::vector<uint8_t>{0, 0, 1}));
  EXPECT_EQ(done->losses[0].groups, (std::vector<Key>{~0ull, 10, 30}));
  EXPECT_TRUE(done->losses[1].groups.empty());
}

// A worker of a team has keys of its own samples only, and numbers of all.
TEST(ScorerTest, AWorkerOfATeamGroupsItsOwnSamples) {
  Graph graph = TwoLosses();
  graph.losses[0].group_column = 2;
  auto scorer = Scorer::Open(graph, "", {});
  ASSERT_TRUE(scorer.ok());
  const std::vector<float> logits = {1.0f, 2.0f}, prices(2, 1.0f);
  const std::vector<std::span<const float>> outputs = {logits, prices};
  Batch batch = Labels(0, {0, 0, 1, 0});
  batch.part = {2, 4};
  batch.columns.resize(3);
  batch.columns[2].keys = {5, 6};
  ASSERT_TRUE(scorer->Add(1, batch, outputs).ok());
  const auto done = scorer->Finish();
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->losses[0].labels, (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(done->losses[0].groups, (std::vector<Key>{5, 6}));
}

// A message of 4 + 1 + 8 bytes for each sample, and of 64 or more for each batch of a loss.
TEST(ScorerTest, MoreScoresThanAMessageTakesAreRefused) {
  Graph graph = TwoLosses();
  graph.losses[0].group_column = 2;
  auto scorer = Scorer::Open(graph, "", {}, 1000);
  ASSERT_TRUE(scorer.ok());
  const std::vector<float> logits(40, 1.0f), prices(40, 1.0f);
  const std::vector<std::span<const float>> outputs = {logits, prices};
  Batch batch = Labels(0, std::vector<float>(40, 1.0f));
  batch.columns.resize(3);
  batch.columns[2].keys.assign(40, 7);
  EXPECT_TRUE(scorer->Add(0, batch, outputs).ok());
  const Status second = scorer->Add(1, batch, outputs);
  EXPECT_EQ(ExitCodeOf(second), 2) << second;
  EXPECT_NE(ToText(second).find("more than 1000 B, the limit of a message"), std::string::npos)
      << second;
}

TEST(ScorerTest, SamplesWithoutALabelEnterNoSum) {
  const Graph graph = TwoLosses();
  auto scorer = Scorer::Open(graph, "", {});
  ASSERT_TRUE(scorer.ok());
  const std::vector<float> logits = {0.5f, -2.0f, 1.0f}, prices(3, 1.0f);
  const std::vector<std::span<const float>> outputs = {logits, prices};
  ASSERT_TRUE(scorer->Add(0, Labels(0, {std::nanf(""), 1, std::nanf("")}), outputs).ok());
  const auto done = scorer->Finish();
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->losses[0].parts[0].samples, 1);
  EXPECT_EQ(done->losses[0].parts[0].label_sum, 1);
  EXPECT_NEAR(done->losses[0].parts[0].loss_sum, std::log1p(std::exp(2.0)), 1e-12);
  EXPECT_EQ(done->losses[0].scores, (std::vector<float>{-2}));
}

TEST(ScorerTest, EveryLossHasItsSums) {
  const Graph graph = TwoLosses();
  auto scorer = Scorer::Open(graph, "", {});
  ASSERT_TRUE(scorer.ok());
  const std::vector<float> logits = {0.5f, -2.0f}, prices = {3.0f, 0.5f};
  const std::vector<std::span<const float>> outputs = {logits, prices};
  ASSERT_TRUE(scorer->Add(0, Labels(0, {1, 0}), outputs).ok());
  const auto done = scorer->Finish();
  ASSERT_TRUE(done.ok());
  ASSERT_EQ(done->losses.size(), 2u);
  EXPECT_EQ(done->losses[0].scores.size(), 2u);
  EXPECT_TRUE(done->losses[1].scores.empty());
  EXPECT_EQ(done->losses[1].parts[0].loss_sum, 4.25);
  EXPECT_EQ(done->losses[1].parts[0].prediction_sum, 3.5);
}

TEST(ScorerTest, ClassesAndPairsAreCountedAndPredicted) {
  const test::ScratchFolder folder;
  Graph graph;
  graph.losses = {{.name = "genre", .type = "softmax_cross_entropy", .label_column = 0},
                  {.name = "next", .type = "in_batch_softmax"},
                  {.name = "pair", .type = "in_batch_softmax", .label_column = 1}};
  auto scorer = Scorer::Open(graph, folder / "out.csv", {});
  ASSERT_TRUE(scorer.ok());
  Batch batch = Labels(0, {2, 0});
  batch.columns[1].floats = {0, 1};
  const std::vector<float> classes = {0, 1, 3, 0, 2, 1}, next = {1.5f, 0.25f, 1, 2.5f, 0.5f, 0},
                           pair = {3, 7, 1, 4, 0.75f, 1};
  const std::vector<std::span<const float>> outputs = {classes, next, pair};
  ASSERT_TRUE(scorer->Add(0, batch, outputs).ok());
  const auto done = scorer->Finish();
  ASSERT_TRUE(done.ok());
  const EvaluatePart genre = done->losses[0].parts[0];
  const double want = std::log(std::exp(0.0) + std::exp(1.0) + std::exp(3.0)) - 3 +
                      std::log(std::exp(0.0) + std::exp(2.0) + std::exp(1.0));
  EXPECT_NEAR(genre.loss_sum, want, 1e-12);
  EXPECT_EQ(genre.samples, 2u);
  EXPECT_EQ(genre.hits, 1u);
  EXPECT_EQ(done->losses[1].parts[0].loss_sum, 0.75);
  EXPECT_EQ(done->losses[1].parts[0].hits, 1u);
  EXPECT_EQ(done->losses[2].parts[0].samples, 1u) << "the first is no pair";
  EXPECT_EQ(done->losses[2].parts[0].loss_sum, 0.75);
  std::stringstream text;
  text << std::ifstream(folder / "out.csv").rdbuf();
  EXPECT_EQ(text.str(), "genre,next,pair\n2,1.5,3\n1,2.5,4\n");
}

TEST(ScorerTest, LossesOfLogitsAreTheirFormulas) {
  Graph graph;
  graph.losses = {
      {.name = "weighted", .type = "binary_cross_entropy", .label_column = 0, .pos_weight = 3},
      {.name = "focal", .type = "focal", .label_column = 0, .gamma = 1.5f, .alpha = 0.75f}};
  auto scorer = Scorer::Open(graph, "", {});
  ASSERT_TRUE(scorer.ok());
  const std::vector<float> logits = {0.5f, -2.0f, 3.0f};
  const std::vector<std::span<const float>> outputs = {logits, logits};
  ASSERT_TRUE(scorer->Add(0, Labels(0, {1, 1, 0}), outputs).ok());
  const auto done = scorer->Finish();
  ASSERT_TRUE(done.ok());
  double weighted = 0, focal = 0;
  for (size_t i = 0; i < 3; ++i) {
    const double p = 1 / (1 + std::exp(-double{logits[i]})), q = i < 2 ? p : 1 - p;
    weighted -= (i < 2 ? 3 : 1) * std::log(q);
    focal -= (i < 2 ? 0.75 : 0.25) * std::pow(1 - q, 1.5) * std::log(q);
  }
  EXPECT_NEAR(done->losses[0].parts[0].loss_sum, weighted, 1e-12);
  EXPECT_NEAR(done->losses[1].parts[0].loss_sum, focal, 1e-12);
  EXPECT_EQ(done->losses[1].scores, (std::vector<float>{-2, 0.5, 3}));
}

TEST(ScorerTest, APositiveItemIsComparedWithItsNegatives) {
  const test::ScratchFolder folder;
  Graph graph;
  graph.losses = {{.name = "bpr", .type = "bpr"},
                  {.name = "softmax", .type = "sampled_softmax", .label_column = 0}};
  auto scorer = Scorer::Open(graph, folder / "out.csv", {});
  ASSERT_TRUE(scorer.ok());
  const std::vector<float> scores = {2, 1, -1, 0.5f, 0.5f, 0};
  const std::vector<std::span<const float>> outputs = {scores, scores};
  ASSERT_TRUE(scorer->Add(0, Labels(0, {1, 0}), outputs).ok());
  const auto done = scorer->Finish();
  ASSERT_TRUE(done.ok());
  const auto pair = [](double negative, double positive) {
    return std::log1p(std::exp(negative - positive));
  };
  const EvaluatePart bpr = done->losses[0].parts[0], softmax = done->losses[1].parts[0];
  EXPECT_NEAR(bpr.loss_sum, (pair(1, 2) + pair(-1, 2) + pair(0.5, 0.5) + pair(0, 0.5)) / 2, 1e-12);
  EXPECT_EQ(bpr.samples, 2u);
  EXPECT_EQ(bpr.hits, 1u) << "a tie is no hit";
  EXPECT_NEAR(softmax.loss_sum, std::log(std::exp(2.0) + std::exp(1.0) + std::exp(-1.0)) - 2,
              1e-12);
  EXPECT_EQ(softmax.samples, 1u) << "the second is no pair";
  std::stringstream text;
  text << std::ifstream(folder / "out.csv").rdbuf();
  EXPECT_EQ(text.str(), "bpr,softmax\n2,2\n0.5,0.5\n");
}

TEST(ScorerTest, PredictionsAreOneLineASampleAndAColumnALoss) {
  const test::ScratchFolder folder;
  const std::string path = folder / "out.csv";
  const Graph graph = TwoLosses();
  auto scorer = Scorer::Open(graph, path, {});
  ASSERT_TRUE(scorer.ok());
  const std::vector<float> logits = {0.0f, 100.0f}, prices = {1.5f, -2.0f};
  const std::vector<std::span<const float>> outputs = {logits, prices};
  ASSERT_TRUE(scorer->Add(0, Labels(0, {0, 1}), outputs).ok());
  EXPECT_FALSE(std::ifstream(path).good()) << "not there before it is complete";
  ASSERT_TRUE(scorer->Finish().ok());
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), "click,price\n0.5,1.5\n1,-2\n");
}

TEST(ScorerTest, AScoreThatIsNotFiniteNamesTheSample) {
  const Graph graph = TwoLosses();
  auto scorer = Scorer::Open(graph, "", {});
  const std::vector<float> logits = {0, std::numeric_limits<float>::quiet_NaN()}, prices(2);
  const std::vector<std::span<const float>> outputs = {logits, prices};
  const Status status = scorer->Add(0, Labels(10, {0, 1}), outputs);
  EXPECT_THAT(ToText(status), ::testing::HasSubstr("click of evaluation sample 12 is not finite"));
}

TEST(ScorerTest, AnUnwritableFileIsNamed) {
  const Graph graph = TwoLosses();
  const auto scorer = Scorer::Open(graph, "/proc/nowhere/out.csv", {});
  ASSERT_FALSE(scorer.ok());
  EXPECT_THAT(ToText(scorer.status()), ::testing::HasSubstr("/proc/nowhere/out.csv"));
}

}  // namespace
}  // namespace dt::worker
