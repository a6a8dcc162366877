// Goal: 1, 2 and 3 workers, and a team, give the same digits for all metrics, those of groups
// included, and a metric of groups may stop training. Method: the tiny job on CSV with a column of
// users, which no node of the graph reads.
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

// Samples of one of 60 users and six ids. The label depends on the ids; some users have positive
// samples only, and some have none.
std::string Clicks(uint64_t seed, uint32_t rows) {
  std::string text = "label,user,features\n";
  for (uint32_t row = 0; row < rows; ++row) {
    const PhiloxBlock a = Philox(seed, row, 0), b = Philox(seed, row, 1);
    const uint32_t user = a[0] % 60, draws[6] = {a[1], a[2], a[3], b[0], b[1], b[2]};
    float score = 0;
    std::string ids;
    for (uint32_t field = 0; field < 6; ++field) {
      const uint32_t id = 1000 * field + draws[field] % (5u << field);
      score += ToUniform(Philox(7, id, 0)[0]) - 0.5f;
      ids += fmt::format("{}{}", field == 0 ? "" : "|", id);
    }
    const bool drawn = ToUniform(b[3]) < 1.0f / (1.0f + std::exp(-3.0f * score));
    const bool click = user < 4 ? user < 2 : drawn;
    text += fmt::format("{},u{},{}\n", click ? 1 : 0, user, ids);
  }
  return text;
}

JobShape GroupedJob(const test::TempFolder& folder, uint32_t workers) {
  const std::string train = folder.Write("train.csv", Clicks(21, 2000));
  const std::string valid = folder.Write("valid.csv", Clicks(22, 1100));
  JobShape shape = {.servers = 1, .workers = workers, .slices = 2, .epochs = 2};
  shape.loss =
      "[{type: binary_cross_entropy, input: logit, label: label, name: click, group: user, "
      "top_k: 3},"
      " {type: mse, input: third, label: label, name: value, weight: 0.5},"
      " {type: softmax_cross_entropy, input: hidden, label: label, name: class}]";
  shape.set = {fmt::format("data={{format: csv, train: [{}], valid: [{}], columns: ["
                           "{{name: label, role: label}}, {{name: user, type: string}}, "
                           "{{name: features, type: ids, length: 6}}]}}",
                           train, valid),
               "train.early_stop={metric: valid.click.gauc, patience: 2}"};
  return shape;
}

TEST(MetricsInProcess, AreTheSameDigitsForAnyNumberOfWorkers) {
  const test::TempFolder folder;
  const JobRun one = RunJob(folder, "one", GroupedJob(folder, 1));
  ExpectCompleted(one);
  ASSERT_TRUE(one.result.valid.has_value());
  const LossMetrics& valid = *one.result.valid;
  ASSERT_EQ(valid.size(), 3u);
  const std::string_view types[] = {"binary_cross_entropy", "mse", "softmax_cross_entropy"};
  for (size_t l = 0; l < valid.size(); ++l) {
    for (const MetricInfo& metric : AllMetrics()) {
      EXPECT_EQ((valid[l].*metric.value).has_value(), metric.IsOf(types[l], l == 0))
          << valid[l].loss << "." << metric.name;
    }
  }
  EXPECT_GT(valid[0].gauc.value_or(0), 0.6);
  EXPECT_GT(valid[0].ndcg.value_or(0), 0.5);
  EXPECT_GT(valid[0].pr_auc.value_or(0), 0.6);
  ASSERT_TRUE(one.result.best.has_value());
  for (const uint32_t workers : {2u, 3u}) {
    const JobRun other = RunJob(folder, fmt::format("w{}", workers), GroupedJob(folder, workers));
    ExpectCompleted(other);
    EXPECT_EQ(other.result.valid, one.result.valid) << workers << " workers";
    EXPECT_EQ(other.result.history.size(), one.result.history.size());
  }
  // Workers of a team have the keys of their own samples only.
  JobShape team = GroupedJob(folder, 2);
  team.set.emplace_back("parallel.data=1");
  const JobRun evaluated =
      RunJob(folder, "one", team,
             {.goal = scheduler::Goal::kEvaluate, .checkpoint = one.result.checkpoint});
  ExpectCompleted(evaluated);
  test::ExpectNear(*evaluated.result.valid, valid);
}

TEST(MetricsInProcess, AGroupOfListsEndsTheJobBeforeItTrains) {
  const test::TempFolder folder;
  JobShape shape = GroupedJob(folder, 1);
  shape.set.emplace_back("model.loss.0.group=features");
  const JobRun run = RunJob(folder, "lists", shape);
  EXPECT_EQ(ExitCodeOf(run.result.status), 2) << run.result.status;
  EXPECT_NE(ToText(run.result.status).find("group \"features\" is no column of one key"),
            std::string::npos)
      << run.result.status;
}

}  // namespace
}  // namespace dt
