// Goal: `mmoe` is the formula of Ma et al. (2018): f_t(x) = Σ_i softmax(x W_t + b_t)_i e_i(x).
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/plan/plan.h"
#include "test/unit/scheduler/composites/expanded_model.h"

namespace dt::test {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr int64_t kExperts = 3, kTasks = 2;

std::vector<NodeConfig> MmoeNodes(Attrs mmoe) {
  return {TinyNode("e", "lookup", {"C*"}, {{"table", "emb"}}, 1),
          TinyNode("shared", "mmoe", {"e", "I1"}, std::move(mmoe), 2),
          TinyNode("logit", "dense", {"shared.1", "shared"}, {{"units", int64_t{1}}}, 3)};
}

Matrix Linear(const ExpandedModel& model, const Matrix& x, const std::string& name) {
  return Plus(Times(x, model.Parameter(name + "weight")), model.Parameter(name + "bias"));
}

std::vector<double> MixedForTask(const ExpandedModel& model, const Matrix& x, int64_t task) {
  const Matrix gate = Linear(model, x, fmt::format("shared.gate{}.", task));
  double sum = 0;
  for (const double g : gate[0]) sum += std::exp(g);
  std::vector<double> mixed(4, 0.0);
  for (int64_t i = 0; i < kExperts; ++i) {
    Matrix y = x;
    for (int layer = 0; layer < 2; ++layer) {
      y = Linear(model, y, fmt::format("shared.expert{}.{}.", i, layer));
      for (double& v : y[0]) v = std::tanh(v);
    }
    const double weight = std::exp(gate[0][static_cast<size_t>(i)]) / sum;
    for (size_t d = 0; d < mixed.size(); ++d) mixed[d] += weight * y[0][d];
  }
  return mixed;
}

TEST(MmoeTest, IsTheFormula) {
  const ExpandedModel model(MmoeNodes({{"units", std::vector<int64_t>{5, 4}},
                                       {"experts", kExperts},
                                       {"tasks", kTasks},
                                       {"activation", "tanh"}}));
  for (size_t b = 0; b < ExpandedModel::kSamples; ++b) {
    const Matrix x = model.Sample("shared.concat", b);
    for (int64_t t = 0; t < kTasks; ++t) {
      EXPECT_THAT(model.Sample(fmt::format("shared.{}", t), b)[0],
                  Pointwise(DoubleNear(1e-9), MixedForTask(model, x, t)))
          << "sample " << b << " task " << t;
    }
  }
}

TEST(MmoeTest, WhatItNeedsIsSaid) {
  const JobConfig job =
      TinyJob(MmoeNodes({{"units", std::vector<int64_t>{5}}, {"experts", int64_t{0}}}));
  const std::string text = ToText(scheduler::MakePlan({job, TinyColumns(), 1}).status());
  EXPECT_THAT(text, HasSubstr("tasks: missing, mmoe needs a whole number"));
  EXPECT_THAT(text, HasSubstr("experts: found 0, expected 1 to 1024"));
  EXPECT_THAT(text, HasSubstr("model.yaml:2"));
}

}  // namespace
}  // namespace dt::test
