// Goal: no pass changes what the model computes, gradients are right, and the plan's order and
// memory give the same bits as a run in which every value has its own memory. Method: the reference
// interpreter on random inputs; float64 and central differences for gradients.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "scheduler/passes/autodiff/autodiff.h"
#include "scheduler/passes/frontend/frontend.h"
#include "scheduler/plan/pass_list.h"
#include "scheduler/plan/plan.h"
#include "test/support/interpreter.h"
#include "test/support/tiny_model.h"

namespace dt::scheduler {
namespace {

using test::FirstParameters;
using test::HostTensor;
using test::Interpreter;
using test::RandomSlice;
using test::SliceData;
using test::Tensors;
using test::TinyColumns;
using test::TinyDeepFm;
using test::TinyDin;
using test::TinyDlrm;
using test::TinyJob;
using test::TinyNode;

constexpr uint64_t kSeed = 11;

RunInfo RunOf(bool training = true) {
  RunInfo run;
  run.seed = kSeed;
  run.step_samples = 13;
  run.training = training;
  return run;
}

std::vector<SliceData> TwoSlices(const Graph& graph) {
  std::vector<SliceData> slices = {RandomSlice(graph, 7, 1), RandomSlice(graph, 6, 2)};
  slices[1].first_sample = 7;
  return slices;
}

// Models for the tests of passes; the lists of DIN vary in length.
struct Model {
  const char* name;
  JobConfig (*job)();
};
constexpr Model kModels[] = {{"DeepFm", [] { return TinyJob(TinyDeepFm()); }},
                             {"Dlrm", [] { return TinyJob(TinyDlrm()); }},
                             {"Din", [] { return TinyJob(TinyDin()); }},
                             {"EveryLoss", test::TinyLosses},
                             {"MoreLosses", test::TinyMoreLosses}};

class PassesOf : public ::testing::TestWithParam<Model> {};
INSTANTIATE_TEST_SUITE_P(Models, PassesOf, ::testing::ValuesIn(kModels),
                         [](const auto& model) { return model.param.name; });

JobConfig WholeJob(const Model& model) {
  JobConfig job = model.job();
  job.optimizer.clip_norm = 0.5;
  job.optimizer.spec.l2 = 0.01f;
  return job;
}

// The values of a run, and its graph.
struct Ran {
  const Graph& graph;
  const Tensors& values;
};
// Whether the bits are equal, but for the sign of zeros: a dropout's gradient may be -0 where it
// drops.
bool AreEqual(const HostTensor& a, const HostTensor& b) {
  if (a == b) return true;
  bool equal = a.size() == b.size();
  for (size_t i = 0; equal && i < a.size(); ++i) equal = a.at(i) == b.at(i);
  return equal;
}
// Names of values of `before` that are missing in `after` or are others there.
std::vector<std::string> Different(const Ran& before, const Ran& after) {
  std::map<std::string, const HostTensor*> by_name;
  for (const auto& [value, tensor] : after.values) by_name[after.graph.value(value).name] = &tensor;
  std::vector<std::string> different;
  for (const auto& [value, tensor] : before.values) {
    const std::string& name = before.graph.value(value).name;
    const auto found = by_name.find(name);
    if (found == by_name.end() || !AreEqual(*found->second, tensor)) different.push_back(name);
  }
  return different;
}
// Values that `fuse` removed from the graph.
std::vector<std::string> Gone(const Graph& before, const Graph& after) {
  std::set<std::string> left;
  for (const Value& value : after.values) left.insert(value.name);
  std::vector<std::string> gone;
  for (const Value& value : before.values) {
    if (!left.contains(value.name)) gone.push_back(value.name);
  }
  std::ranges::sort(gone);
  return gone;
}

TEST_P(PassesOf, EachLeavesTheResultsUnchanged) {
  const JobConfig job = WholeJob(GetParam());
  const PlanRequest request{job, TinyColumns(), 2};
  TaskPool pool(2);
  Result<Graph> graph = Expand({}, request);
  ASSERT_TRUE(graph.ok()) << ToText(graph.status());
  for (const GraphPass& pass : GraphPasses().subspan(1)) {
    Result<Graph> next = pass.run(*graph, request);
    ASSERT_TRUE(next.ok()) << pass.name << ": " << ToText(next.status());
    const std::vector<SliceData> slices = TwoSlices(*graph), same = TwoSlices(*next);
    Tensors before = FirstParameters(*graph, kSeed), after = FirstParameters(*next, kSeed);
    const auto was = Interpreter(*graph, pool).RunStep(slices, before, RunOf());
    const auto is = Interpreter(*next, pool).RunStep(same, after, RunOf());
    const std::vector<std::string> gone = Gone(*graph, *next);
    EXPECT_EQ(gone.empty(), pass.name != "fuse");
    for (size_t k = 0; k < slices.size(); ++k) {
      std::vector<std::string> different =
          Different({*graph, was.slices[k]}, {*next, is.slices[k]});
      std::ranges::sort(different);
      EXPECT_EQ(different, gone) << pass.name;
    }
    if (pass.name != "add_optimizer") {  // This pass adds the updates, which change parameters.
      EXPECT_EQ(Different({*graph, before}, {*next, after}), std::vector<std::string>{})
          << pass.name;
    }
    graph = std::move(next);
  }
}

TEST_P(PassesOf, OrderAndMemoryOfThePlanGiveTheSameBits) {
  const JobConfig job = WholeJob(GetParam());
  const Result<Plan> plan = MakePlan({job, TinyColumns(), 2});
  ASSERT_TRUE(plan.ok()) << ToText(plan.status());
  TaskPool pool(1);
  Tensors parameters = FirstParameters(plan->graph, kSeed);
  Interpreter reference(plan->graph, pool);
  const SliceData slice = RandomSlice(plan->graph, 7, 3);
  const Tensors own = reference.RunSlice(slice, parameters, RunOf());
  const std::vector<bool> kept = KeptValues(plan->graph);
  Tensors slots = RunOnSlots({*plan, plan->train, kept}, slice, parameters, RunOf());
  std::erase_if(slots,
                [&](const auto& e) { return plan->graph.value(e.first).kind != ValueKind::kNode; });
  for (const auto& [value, tensor] : slots) {
    if (plan->graph.nodes[plan->graph.value(value).producer].phase != Phase::kSlice) continue;
    EXPECT_EQ(tensor, own.at(value)) << plan->graph.value(value).name;
  }
}

TEST_P(PassesOf, EvaluationOnTheSameSlotsGivesTheSameBits) {
  const JobConfig job = WholeJob(GetParam());
  const Result<Plan> plan = MakePlan({job, TinyColumns(), 2});
  ASSERT_TRUE(plan.ok());
  TaskPool pool(1);
  Tensors parameters = FirstParameters(plan->graph, kSeed);
  const SliceData slice = RandomSlice(plan->graph, 9, 4);
  const Tensors own = Interpreter(plan->graph, pool).RunSlice(slice, parameters, RunOf(false));
  const ValueIndex output = plan->graph.losses[0].output;
  std::vector<bool> wanted(plan->graph.values.size(), false);
  wanted[output] = true;
  const Tensors slots =
      RunOnSlots({*plan, plan->evaluate, wanted}, slice, parameters, RunOf(false));
  EXPECT_EQ(slots.at(output), own.at(output));
}

TEST(PassesTest, UpdatesLowerTheLoss) {
  JobConfig job = TinyJob(TinyDeepFm());
  job.optimizer.spec.lr = 0.02f;
  const Result<Plan> plan = MakePlan({job, TinyColumns(), 2});
  ASSERT_TRUE(plan.ok());
  TaskPool pool(2);
  Tensors parameters = FirstParameters(plan->graph, kSeed);
  Interpreter interpreter(plan->graph, pool);
  const std::vector<SliceData> slices = TwoSlices(plan->graph);
  std::vector<double> losses;
  for (Step step = 0; step < 60; ++step) {
    RunInfo run = RunOf();
    run.step = step;
    const auto result = interpreter.RunStep(slices, parameters, run);
    double loss = 0;
    for (const Tensors& slice : result.slices) loss += slice.at(plan->graph.losses[0].loss).at(0);
    losses.push_back(loss);
  }
  EXPECT_LT(losses.back(), 0.6 * losses.front());
}

// The loss of one slice as a function of one tensor.
class NumericalGradient {
 public:
  NumericalGradient(const Graph& graph, const SliceData& slice, Tensors parameters)
      : graph_(graph), slice_(slice), parameters_(std::move(parameters)) {}

  double At(ValueIndex value, size_t element) {
    const bool input = slice_.inputs.contains(value);
    HostTensor& tensor = input ? slice_.inputs.at(value) : parameters_.at(value);
    const double x = tensor.at(element), h = 1e-6;
    tensor.set(element, x + h);
    const double above = Loss();
    tensor.set(element, x - h);
    const double below = Loss();
    tensor.set(element, x);
    return (above - below) / (2 * h);
  }

 private:
  double Loss() {
    const Tensors values = Interpreter(graph_, pool_).RunSlice(slice_, parameters_, RunOf());
    double loss = 0;
    for (const LossSpec& spec : graph_.losses)
      loss += double{spec.weight} * values.at(spec.loss).at(0);
    return loss;
  }

  Graph graph_;
  SliceData slice_;
  Tensors parameters_;
  TaskPool pool_{1};
};

TEST_P(PassesOf, GradientsAreThoseOfTheWholeModelInFloat64) {
  const JobConfig job = WholeJob(GetParam());
  const PlanRequest request{job, TinyColumns(), 1};
  const Graph expanded = *InferShapes(*Expand({}, request), request);
  const Graph graph = test::InFloat64(*Differentiate(expanded, request));
  TaskPool pool(1);
  SliceData slice = RandomSlice(graph, 7, 5);
  slice.inputs = test::InFloat64(slice.inputs);
  Tensors parameters = test::InFloat64(FirstParameters(graph, kSeed));
  const Tensors values = Interpreter(graph, pool).RunSlice(slice, parameters, RunOf());
  NumericalGradient numerical(test::InFloat64(expanded), slice, parameters);
  std::vector<std::pair<ValueIndex, ValueIndex>> pairs;  // Pairs of a value and its gradient.
  for (const ParameterSpec& p : graph.parameters) {
    if (p.trained) pairs.emplace_back(p.value, p.grad);
  }
  for (const TableUse& table : graph.tables) pairs.emplace_back(table.rows, table.row_grad);
  size_t moving = 0;
  for (const auto& [value, grad] : pairs) {
    const HostTensor& given = values.at(grad);
    for (size_t i = 0; i < given.size(); i += 1 + given.size() / 8) {
      const double expected = numerical.At(value, i);
      moving += std::abs(expected) > 1e-6 ? 1 : 0;
      EXPECT_NEAR(given.at(i), expected, 1e-7 + 1e-5 * std::abs(expected))
          << graph.value(value).name << "[" << i << "]";
    }
  }
  // At least so many gradients must be different from zero, or nothing was tested.
  EXPECT_GT(moving, 40u);
}

TEST(PassesTest, LossWeightsScaleTheGradientAndSumOverLosses) {
  JobConfig job = TinyJob({TinyNode("x", "dense", {"I1", "I2"}, {{"units", int64_t{1}}}, 1)});
  const auto grad_of = [&](float first, float second) {
    JobConfig two = job;
    two.model.losses.push_back(two.model.losses[0]);
    two.model.losses[0].weight = first;
    two.model.losses[1].weight = second;
    two.model.losses[1].type = "mse";
    two.model.losses[1].name = "again";
    const Result<Plan> plan = MakePlan({two, TinyColumns(), 1});
    DT_CHECK_MSG(plan.ok(), "{}", ToText(plan.status()));
    TaskPool pool(1);
    Tensors parameters = FirstParameters(plan->graph, kSeed);
    const SliceData slice = RandomSlice(plan->graph, 7, 6);
    const Tensors values = Interpreter(plan->graph, pool).RunSlice(slice, parameters, RunOf());
    return values.at(plan->graph.parameters[0].grad).at(0);
  };
  EXPECT_NEAR(grad_of(2, 3), 2 * grad_of(1, 0) + 3 * grad_of(0, 1), 1e-6);
  EXPECT_NE(grad_of(1, 0), grad_of(0, 1));
}

}  // namespace
}  // namespace dt::scheduler
