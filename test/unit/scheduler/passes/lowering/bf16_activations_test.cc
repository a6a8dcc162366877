// Goal: the pass stores in bf16 exactly those values that products round anyway, and results keep
// their bits. Method: the reference interpreter before and after the pass, for slices of one tile,
// of several tiles, and of a fractional number of tiles.
#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "common/base/float_formats.h"
#include "scheduler/passes/lowering/lowering.h"
#include "scheduler/plan/pass_list.h"
#include "test/support/interpreter.h"
#include "test/support/tiny_model.h"

namespace dt::scheduler {
namespace {

using test::HostTensor;
using test::Interpreter;
using test::SliceData;
using test::Tensors;
using test::TinyNode;

// Two towers that are added; the sum reads the output of the first.
JobConfig TwoTowers(const std::string& math) {
  JobConfig job =
      test::TinyJob({TinyNode("m", "mlp", {"I*"}, {{"units", std::vector<int64_t>{40, 20, 9}}}, 1),
                     TinyNode("n", "mlp", {"m"}, {{"units", std::vector<int64_t>{9, 9}}}, 2),
                     TinyNode("s", "add", {"m", "n"}, {}, 3),
                     TinyNode("logit", "dense", {"s"}, {{"units", int64_t{1}}}, 4)});
  job.train.math = math;
  return job;
}

// The graph before and after `bf16_activations`.
struct Both {
  Graph before, after;
};
Both GraphsOf(const JobConfig& job) {
  const PlanRequest request{job, test::TinyColumns(), 1, test::TinyAccelerator()};
  Both both;
  for (const GraphPass& pass : GraphPasses()) {
    Result<Graph> next = pass.run(both.after, request);
    DT_CHECK_MSG(next.ok(), "{}: {}", pass.name, ToText(next.status()));
    both.before = std::move(both.after);
    both.after = *std::move(next);
    if (pass.name == "bf16_activations") return both;
  }
  DT_CHECK_MSG(false, "there is no pass bf16_activations");
  return both;
}

std::set<std::string> Bf16ValuesOf(const Graph& graph) {
  std::set<std::string> names;
  for (const Value& value : graph.values) {
    if (value.dtype == DType::kBf16) names.insert(value.name);
  }
  return names;
}

HostTensor Rounded(const HostTensor& tensor) {
  HostTensor rounded = HostTensor::Of(DType::kBf16, tensor.shape);
  const auto* const floats = reinterpret_cast<const float*>(tensor.bytes.data());
  EncodeRow(FloatFormat::kBf16, {floats, tensor.size()}, rounded.bytes.data());
  return rounded;
}

TEST(Bf16Activations, RowsBetweenLayersOnTheProcessor) {
  const std::set<std::string> want = {"m.0.relu",      "m.1.relu",      "n.0.relu",
                                      "m.0.relu.grad", "m.1.relu.grad", "n.0.relu.grad"};
  EXPECT_EQ(Bf16ValuesOf(GraphsOf(TwoTowers("bf16")).after), want);
  EXPECT_TRUE(Bf16ValuesOf(GraphsOf(TwoTowers("fp32")).after).empty());
  EXPECT_TRUE(Bf16ValuesOf(GraphsOf(TwoTowers("tf32")).after).empty());

  JobConfig job = TwoTowers("bf16");
  job.parallel.place = {{"m.1*", Device::kGpu}};
  EXPECT_EQ(Bf16ValuesOf(GraphsOf(job).after),
            (std::set<std::string>{"n.0.relu", "n.0.relu.grad"}));
}

TEST(Bf16Activations, WhatOthersThanNodesReadStays) {
  const JobConfig job = TwoTowers("bf16");
  Graph before = GraphsOf(job).before;
  const auto value = [&](const std::string& name) {
    return static_cast<ValueIndex>(std::ranges::find(before.values, name, &Value::name) -
                                   before.values.begin());
  };
  before.parameters[0].pushed = value("m.0.relu.grad");
  before.losses[0].output = value("n.0.relu");
  const Result<Graph> after = StoreActivationsInBf16(before, {job, test::TinyColumns(), 1});
  ASSERT_TRUE(after.ok()) << ToText(after.status());
  EXPECT_EQ(Bf16ValuesOf(*after),
            (std::set<std::string>{"m.0.relu", "m.1.relu", "m.1.relu.grad", "n.0.relu.grad"}));
}

TEST(Bf16Activations, ResultsHaveTheSameBits) {
  const Both both = GraphsOf(TwoTowers("bf16"));
  TaskPool pool(2);
  for (const uint32_t samples : {0u, 1u, 63u, 70u, 300u, 1100u}) {
    SCOPED_TRACE(samples);
    RunInfo run;
    run.step_samples = samples;
    const SliceData slice = test::RandomSlice(both.before, samples, 5);
    Tensors was_parameters = test::FirstParameters(both.before, 3), is_parameters = was_parameters;
    const auto was = Interpreter(both.before, pool).RunStep({slice}, was_parameters, run);
    const auto is = Interpreter(both.after, pool).RunStep({slice}, is_parameters, run);
    EXPECT_EQ(is_parameters, was_parameters);
    for (const auto& [value, tensor] : is.slices[0]) {
      const HostTensor& wide = was.slices[0].at(value);
      const bool narrow = tensor.dtype == DType::kBf16;
      EXPECT_EQ(tensor, narrow ? Rounded(wide) : wide) << both.after.value(value).name;
    }
  }
}

}  // namespace
}  // namespace dt::scheduler
