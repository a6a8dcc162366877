// Goal: a node never runs where its operator, its gradient or its update has no kernel: a node
// without a rule is placed elsewhere, and a tag that cannot be satisfied is refused with its line,
// or falls back to the CPU. Method: one model, and accelerators that each lack one operator.
#include <algorithm>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/plan/plan.h"
#include "test/support/tiny_model.h"
#include "test/unit/scheduler/passes/placement/placed_models.h"

namespace dt::scheduler {
namespace {

using test::AutomaticJob;
using test::Speeds;
using test::TinyAccelerator;
using test::TinyColumns;
using test::TinyNode;
using ::testing::HasSubstr;

size_t CountOn(const Graph& graph, Device device) {
  return static_cast<size_t>(std::ranges::count(graph.nodes, device, &Node::device));
}

// A product, "t", and another product; the accelerator lacks these operators.
struct Lacking {
  JobConfig job = AutomaticJob({TinyNode("m", "dense", {"I1", "I2"}, {{"units", int64_t{64}}}, 3),
                                TinyNode("t", "tanh", {"m"}, {}, 4),
                                TinyNode("top", "dense", {"t"}, {{"units", int64_t{1}}}, 5)},
                               4096);
  std::vector<std::string> without;

  Result<Plan> PlanIt(PlacementReport* report = nullptr) const {
    PlanRequest request{job, TinyColumns(), 1, TinyAccelerator()};
    request.accelerator->without_kernel = without;
    request.profile = Speeds(1000, 1e14);
    request.report = report;
    return MakePlan(request);
  }
};

std::vector<std::string> OnGpu(const Plan& plan, std::string_view op) {
  std::vector<std::string> names;
  for (const Node& node : plan.graph.nodes) {
    if (node.op == op && node.device == Device::kGpu) names.push_back(node.name);
  }
  return names;
}

TEST(WithoutKernel, WhatIsFreeIsPlacedElsewhere) {
  for (const char* op :
       {"tanh", "tanh_grad", "update", "matmul", "dense_layer", "relu_bias_grad"}) {
    Lacking lacking;
    EXPECT_GT(CountOn(lacking.PlanIt().value().graph, Device::kGpu), 4u);
    lacking.without = {op};
    const Result<Plan> plan = lacking.PlanIt();
    ASSERT_TRUE(plan.ok()) << op << ToText(plan.status());
    EXPECT_THAT(OnGpu(*plan, op), ::testing::IsEmpty()) << op;
    EXPECT_GT(CountOn(plan->graph, Device::kGpu), 0u) << op;
  }
}

TEST(WithoutKernel, TagsThatCannotHoldAreNamedOrFallBack) {
  struct Case {
    const char* op;
    std::function<void(JobConfig&)> tag;
    const char* says;
  };
  const Case cases[] = {
      {"tanh", [](JobConfig& job) { job.model.nodes[1].device = Device::kGpu; },
       "node \"t\": tagged gpu, and operator tanh has no kernel there (model.yaml:4); say cpu"},
      {"tanh_grad", [](JobConfig& job) { job.model.nodes[1].device = Device::kGpu; },
       "node \"t\": tagged gpu, and operator tanh_grad has no kernel there (model.yaml:4)"},
      {"tanh",
       [](JobConfig& job) {
         job.parallel.place = {{"t*", Device::kGpu, Placed::kOperators, {"job.yaml", 9}}};
       },
       "node \"t\": parallel.place \"t*\" gpu, and operator tanh has no kernel there (job.yaml:9)"},
      {"update", [](JobConfig& job) { job.optimizer.device = Device::kGpu; },
       "optimizer.device: gpu, and operator update has no kernel there"},
  };
  for (const Case& c : cases) {
    Lacking lacking;
    c.tag(lacking.job);
    ASSERT_TRUE(lacking.PlanIt().ok()) << c.says;
    lacking.without = {c.op};
    const Status status = lacking.PlanIt().status();
    EXPECT_THAT(ToText(status), HasSubstr(c.says));
    EXPECT_THAT(ToText(status), HasSubstr("parallel.fallback"));
    lacking.job.parallel.fall_back_to_cpu = true;
    PlacementReport report;
    const Result<Plan> plan = lacking.PlanIt(&report);
    ASSERT_TRUE(plan.ok()) << c.says << ToText(plan.status());
    EXPECT_THAT(OnGpu(*plan, c.op), ::testing::IsEmpty()) << c.says;
    EXPECT_THAT(report.fallback, HasSubstr("has no kernel there")) << c.says;
  }
}

TEST(WithoutKernel, ATableNeedsTheKernelOfItsUpdate) {
  JobConfig job = AutomaticJob(test::TinyDeepFm(), 64);
  job.model.tables[0].device = Device::kGpu;
  PlanRequest request{job, TinyColumns(), 1, TinyAccelerator()};
  ASSERT_TRUE(MakePlan(request).ok());
  request.accelerator->without_kernel = {"update_rows"};
  EXPECT_THAT(ToText(MakePlan(request).status()),
              HasSubstr("operator update_rows has no kernel there"));
}

TEST(WithoutKernel, AWeightNeedsTheKernelsOfAllThatUpdatesIt) {
  JobConfig job = AutomaticJob(test::TinyDeepFm(), 64);
  job.optimizer.device = Device::kGpu;
  PlanRequest request{job, TinyColumns(), 1, TinyAccelerator()};
  request.accelerator->without_kernel = {"add_l2"};
  EXPECT_TRUE(MakePlan(request).ok());  // Accepted, because nothing is regularized.
  job.optimizer.spec.l2 = 0.01f;
  EXPECT_THAT(ToText(MakePlan(request).status()), HasSubstr("operator add_l2 has no kernel there"));
}

}  // namespace
}  // namespace dt::scheduler
