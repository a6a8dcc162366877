// Goal: `moe` is the formula of Shazeer et al. (2017): y(x) = Σ_i G(x)_i e_i(x) over the k experts
// with the largest scores x W, where G is the softmax of these scores; one expert is the layers of
// `mlp`.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/plan/plan.h"
#include "test/unit/scheduler/composites/expanded_model.h"

namespace dt::test {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using Ints = std::vector<int64_t>;

constexpr size_t kMoeExperts = 3;

std::vector<NodeConfig> MoeNodes(Attrs moe) {
  return {TinyNode("e", "lookup", {"C*"}, {{"table", "emb"}}, 1),
          TinyNode("mix", "moe", {"e", "I1"}, std::move(moe), 2),
          TinyNode("logit", "dense", {"mix"}, {{"units", int64_t{1}}}, 3)};
}

// Rows [i · rows, (i + 1) · rows) of a parameter that is read as a matrix.
Matrix PartOf(const Matrix& all, size_t i, size_t rows) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(i * rows);
  return {begin, begin + static_cast<std::ptrdiff_t>(rows)};
}

std::vector<double> Expert(const ExpandedModel& model, Matrix y, size_t i) {
  for (int layer = 0; layer < 2; ++layer) {
    const std::string prefix = fmt::format("mix.{}.", layer);
    const Matrix weight = PartOf(model.Parameter(prefix + "weight"), i, y[0].size());
    y = Plus(Times(y, weight), PartOf(model.Parameter(prefix + "bias"), i, 1));
    for (double& v : y[0]) v = std::tanh(v);
  }
  return y[0];
}

std::vector<double> Mixed(const ExpandedModel& model, const Matrix& x, size_t k) {
  const std::vector<double> scores = Times(x, model.Parameter("mix.router.weight"))[0];
  std::vector<size_t> order(kMoeExperts);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, std::greater<>(), [&](size_t i) { return scores[i]; });
  double sum = 0;
  for (size_t j = 0; j < (k == 1 ? kMoeExperts : k); ++j) sum += std::exp(scores[order[j]]);
  std::vector<double> mixed(4, 0.0);
  for (size_t j = 0; j < k; ++j) {
    const std::vector<double> y = Expert(model, x, order[j]);
    for (size_t d = 0; d < mixed.size(); ++d) mixed[d] += std::exp(scores[order[j]]) / sum * y[d];
  }
  return mixed;
}

TEST(MoeTest, IsTheFormula) {
  for (const size_t k : {1, 2, 3}) {
    const ExpandedModel model(MoeNodes({{"units", Ints{5, 4}},
                                        {"experts", int64_t{kMoeExperts}},
                                        {"k", static_cast<int64_t>(k)},
                                        {"activation", "tanh"}}));
    for (size_t b = 0; b < ExpandedModel::kSamples; ++b) {
      EXPECT_THAT(model.Sample("mix", b)[0],
                  Pointwise(DoubleNear(1e-9), Mixed(model, model.Sample("mix.concat", b), k)))
          << "sample " << b << ", k " << k;
    }
  }
}

// The same nodes written by name: a job file can use every operator of a composite.
TEST(MoeTest, ItsOperatorsCanBeWrittenByName) {
  const auto weight = [](const char* name, Ints shape, int line) {
    return TinyNode(name, "parameter", {}, {{"shape", std::move(shape)}}, line);
  };
  std::vector<NodeConfig> nodes = {
      TinyNode("e", "lookup", {"C*"}, {{"table", "emb"}}, 1),
      TinyNode("x", "flatten", {"e"}, {}, 2),
      TinyNode("scores", "dense", {"x"}, {{"units", int64_t{3}}}, 3),
      TinyNode("best", "top_k", {"scores"}, {{"k", int64_t{2}}}, 4),
      TinyNode("sent", "dispatch", {"x", "best.1"}, {{"experts", int64_t{3}}}, 5),
      weight("w", {3, 12, 4}, 6),
      TinyNode("made", "expert_matmul", {"sent", "sent.1", "w"}, {}, 7),
      TinyNode("mix", "combine", {"made", "sent.2", "best"}, {}, 8),
      TinyNode("logit", "dense", {"mix"}, {{"units", int64_t{1}}}, 9)};
  const ExpandedModel model(nodes);
  for (size_t b = 0; b < ExpandedModel::kSamples; ++b) {
    const Matrix scores = model.Sample("scores.bias_add", b);
    const Matrix x = model.Sample("x.flat", b), w = model.Parameter("w.value");
    std::vector<size_t> order = {0, 1, 2};
    std::ranges::sort(order, std::greater<>(), [&](size_t i) { return scores[0][i]; });
    std::vector<double> want(4, 0.0);
    for (size_t j = 0; j < 2; ++j) {
      const Matrix y = Times(x, PartOf(w, order[j], 12));
      for (size_t d = 0; d < want.size(); ++d) want[d] += scores[0][order[j]] * y[0][d];
    }
    EXPECT_THAT(model.Sample("mix", b)[0], Pointwise(DoubleNear(1e-9), want)) << b;
  }
  // Row counts must come from the rows' own dispatch; otherwise kernels would read outside their
  // inputs.
  const auto refused = [&] {
    return ToText(scheduler::MakePlan({TinyJob(nodes), TinyColumns(), 1}).status());
  };
  nodes[6].inputs[0] = "x";
  EXPECT_THAT(refused(), HasSubstr("expert_matmul: rows of [B, 12] are not as many as those that "
                                   "\"sent\" sorts, [2*B, 12]"));
  nodes[6].inputs = {"sent", "best.1", "w"};
  nodes[7].inputs = {"sent", "best.1", "best"};
  const std::string text = refused();
  EXPECT_THAT(text,
              HasSubstr("expert_matmul: input 2 (\"best:1\") must be result .1 of a dispatch"));
  EXPECT_THAT(text, HasSubstr("combine: input 2 (\"best:1\") must be result .2 of a dispatch"));
  EXPECT_THAT(text, HasSubstr("model.yaml:7"));
}

TEST(MoeTest, OneExpertIsThePerceptron) {
  const Attrs layers = {{"units", Ints{5, 4}}, {"activation", "relu"}};
  Attrs one = layers;
  one["experts"] = one["k"] = int64_t{1};
  std::vector<NodeConfig> nodes = MoeNodes(one);
  nodes.insert(nodes.begin() + 2, TinyNode("deep", "mlp", {"e", "I1"}, layers, 4));
  nodes[3].inputs = {"mix", "deep"};
  const JobConfig job = TinyJob(nodes);
  const Result<Plan> plan = scheduler::MakePlan({job, TinyColumns(), 1});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Graph& graph = plan->graph;
  Tensors parameters = FirstParameters(graph, 1);
  const auto named = [&](const std::string& name) {
    const auto found = std::ranges::find(graph.values, name, &Value::name);
    EXPECT_NE(found, graph.values.end()) << name;
    return static_cast<ValueIndex>(found - graph.values.begin());
  };
  for (const char* part : {"0.weight", "0.bias", "1.weight", "1.bias"}) {
    const HostTensor& from = parameters.at(named(fmt::format("mix.{}", part)));
    parameters.at(named(fmt::format("deep.{}", part))).bytes = from.bytes;
  }
  // The last layer reads both halves with equal weights, so that equal gradients come back.
  HostTensor& top = parameters.at(named("logit.weight"));
  for (size_t i = 0; i < 4; ++i) top.set(4 + i, top.at(i));
  TaskPool pool(2);
  RunInfo run;
  run.step_samples = 200;
  const SliceData slice = RandomSlice(graph, 200, 2);
  const Tensors values = Interpreter(graph, pool).RunSlice(slice, parameters, run);
  const auto spec = [&](const std::string& name) {
    return std::ranges::find(graph.parameters, named(name), &ParameterSpec::value)->grad;
  };
  for (const char* part : {"1.weight", "1.bias", "0.weight", "0.bias"}) {
    const HostTensor& mixed = values.at(spec(fmt::format("mix.{}", part)));
    const HostTensor& deep = values.at(spec(fmt::format("deep.{}", part)));
    ASSERT_EQ(mixed.size(), deep.size());
    for (size_t i = 0; i < mixed.size(); ++i) EXPECT_EQ(mixed.at(i), deep.at(i)) << part;
  }
}

TEST(MoeTest, WhatItNeedsIsSaid) {
  const auto said = [](Attrs attrs) {
    return ToText(
        scheduler::MakePlan({TinyJob(MoeNodes(std::move(attrs))), TinyColumns(), 1}).status());
  };
  const std::string few = said({{"units", Ints{5}}, {"experts", int64_t{3}}, {"k", int64_t{4}}});
  EXPECT_THAT(few, HasSubstr("k is 4, expected at most its number of experts, 3"));
  EXPECT_THAT(few, HasSubstr("model.yaml:2"));
  EXPECT_THAT(few, HasSubstr("\"mix\""));
  const std::string none = said({{"k", int64_t{0}}, {"activation", "dice"}});
  EXPECT_THAT(none, HasSubstr("experts: missing, moe needs a whole number"));
  EXPECT_THAT(none, HasSubstr("units: missing, moe needs a list of whole numbers"));
  EXPECT_THAT(none, HasSubstr("k: found 0, expected 1 to 1024"));
  EXPECT_THAT(none, HasSubstr("activation: found \"dice\", expected one of none, relu"));
}

}  // namespace
}  // namespace dt::test
