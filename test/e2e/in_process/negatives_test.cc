// Goal: losses over negative items learn, with equal parameters and metrics for any number of
// workers and after a resume. Method: matrix factorisation on CSV. A user likes a third of the
// items; a sampled column has the negatives, and a loss of weight 0 ranks the labelled items of
// each user.
#include <map>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "test/e2e/in_process/in_process_job.h"

namespace dt {
namespace {

using test::ExpectCompleted;
using test::JobRun;
using test::JobShape;
using test::RunJob;

// Random pairs of 30 users and 40 items.
std::string Pairs(uint64_t seed, uint32_t rows) {
  std::string text = "label,user,item\n";
  for (uint32_t row = 0; row < rows; ++row) {
    const PhiloxBlock a = Philox(seed, row, 0);
    const uint32_t user = a[0] % 30, item = a[1] % 40;
    text += fmt::format("{},{},{}\n", (user + item) % 3 == 0 ? 1 : 0, user, item);
  }
  return text;
}

JobShape NegativesJob(const test::TempFolder& folder, uint32_t workers) {
  const std::string train = folder.Write("pairs.csv", Pairs(31, 6000));
  const std::string valid = folder.Write("valid_pairs.csv", Pairs(32, 900));
  JobShape shape = {.servers = 1, .workers = workers, .slices = 2, .epochs = 4};
  shape.loss =
      "[{type: bpr, input: score, negatives: others, label: label, name: bpr},"
      " {type: sampled_softmax, input: score, negatives: others, label: label, name: softmax},"
      " {type: in_batch_softmax, input: uf, item: if, item_id: item, log_q: often, label: label,"
      "  name: batch},"
      " {type: focal, input: logit, label: label, name: focal},"
      " {type: binary_cross_entropy, input: score, label: label, name: rank, weight: 0,"
      "  group: user, top_k: 5}]";
  shape.set = {
      fmt::format("data={{format: csv, train: [{}], valid: [{}], columns: ["
                  "{{name: label, role: label}}, {{name: user, type: id}}, "
                  "{{name: drawn, type: ids, length: 6, transform: sampled_unigram, of: item}}, "
                  "{{name: often, type: float, transform: log_frequency, of: item}}, "
                  "{{name: item, type: id}}]}}",
                  train, valid),
      "model.tables={users: {dim: 8, init: {normal: 0.3}}, items: {dim: 8, init: {normal: 0.3}}}",
      "model.graph=[{name: u, op: lookup, table: users, inputs: [user]}, "
      "{name: i, op: lookup, table: items, inputs: [item]}, "
      "{name: d, op: lookup, table: items, inputs: [drawn]}, "
      "{name: ui, op: mul, inputs: [u, i]}, {name: score, op: reduce_sum, inputs: [ui], axis: 2}, "
      "{name: ud, op: mul, inputs: [u, d]}, {name: others, op: reduce_sum, inputs: [ud], axis: 2}, "
      "{name: uf, op: flatten, inputs: [u]}, {name: if, op: flatten, inputs: [i]}, "
      "{name: logit, op: dense, inputs: [ui], units: 1}]"};
  return shape;
}

std::map<std::string, std::string> TableChecksums(const JobResult& result) {
  std::map<std::string, std::string> sums = {{"dense", result.dense_checksum}};
  for (const auto& [name, table] : result.tables) sums[name] = table.checksum;
  return sums;
}

TEST(NegativesInProcess, LearnTheSameForAnyNumberOfWorkers) {
  const test::TempFolder folder;
  const JobRun one = RunJob(folder, "one", NegativesJob(folder, 1));
  ExpectCompleted(one);
  ASSERT_TRUE(one.result.valid.has_value());
  const LossMetrics& valid = *one.result.valid;
  ASSERT_EQ(valid.size(), 5u);
  // A third of the items is liked, so two in six negatives are no worse than the item.
  EXPECT_GT(valid[0].accuracy.value_or(0), 0.25) << "one in seven by chance";
  EXPECT_LT(valid[0].logloss.value_or(1), 0.6) << "log 2 by chance";
  EXPECT_LT(valid[1].logloss.value_or(9), 1.8) << "log 7 by chance";
  EXPECT_LT(valid[2].logloss.value_or(9), 5.0) << "log 256 by chance, the samples of a batch";
  EXPECT_GT(valid[3].auc.value_or(0), 0.8);
  EXPECT_GT(valid[4].gauc.value_or(0), 0.8);
  EXPECT_GT(valid[4].hit_rate.value_or(0), 0.8);
  EXPECT_EQ(valid[0].samples, valid[1].samples);
  EXPECT_LT(valid[0].samples, valid[4].samples) << "the pairs, and all samples";
  for (const uint32_t workers : {2u, 3u}) {
    const JobRun other = RunJob(folder, fmt::format("w{}", workers), NegativesJob(folder, workers));
    ExpectCompleted(other);
    EXPECT_EQ(TableChecksums(other.result), TableChecksums(one.result)) << workers << " workers";
    EXPECT_EQ(other.result.valid, one.result.valid) << workers << " workers";
  }
  JobShape team = NegativesJob(folder, 2);
  team.set.emplace_back("parallel.data=1");
  const JobRun evaluated =
      RunJob(folder, "one", team,
             {.goal = scheduler::Goal::kEvaluate, .checkpoint = one.result.checkpoint});
  ExpectCompleted(evaluated);
  test::ExpectNear(*evaluated.result.valid, valid);
}

// max_steps ends the first run in the middle of the second epoch; two workers take over from three.
TEST(NegativesInProcess, AJobResumedInTheMiddleOfAnEpochDrawsTheSame) {
  const test::TempFolder folder;
  const JobRun whole = RunJob(folder, "whole", NegativesJob(folder, 1));
  ExpectCompleted(whole);
  JobShape begun = NegativesJob(folder, 3);
  begun.set.emplace_back("train.max_steps=31");
  ExpectCompleted(RunJob(folder, "parts", begun));
  const JobRun resumed = RunJob(folder, "parts", NegativesJob(folder, 2), {.resume = "auto"});
  ExpectCompleted(resumed);
  EXPECT_EQ(resumed.result.steps, whole.result.steps);
  EXPECT_EQ(TableChecksums(resumed.result), TableChecksums(whole.result));
  EXPECT_EQ(resumed.result.valid, whole.result.valid);
  JobShape seeded = NegativesJob(folder, 1);
  seeded.set.emplace_back("data.columns.drawn.name=other");
  seeded.set.emplace_back("model.graph.d.inputs=[other]");
  const JobRun other = RunJob(folder, "other", seeded);
  ExpectCompleted(other);
  EXPECT_NE(TableChecksums(other.result), TableChecksums(whole.result)) << "other negatives";
}

}  // namespace
}  // namespace dt
