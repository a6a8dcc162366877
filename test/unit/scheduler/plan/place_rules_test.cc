// Goal: a rule of parallel.place means what its name says, and mistakes in rules are told.
#include <algorithm>
#include <map>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/plan/plan.h"
#include "test/support/tiny_model.h"

namespace dt::scheduler {
namespace {

using test::TinyColumns;
using test::TinyDeepFm;
using test::TinyJob;
using ::testing::HasSubstr;

Result<Plan> PlanByRules(const JobConfig& job) {
  return MakePlan({job, TinyColumns(), 2, test::TinyAccelerator()});
}

TEST(PlaceRules, MeanNodesByNameAndWhatIsMadeOfThem) {
  const auto on_gpu = [](const Graph& graph, std::string_view prefix) {
    return std::ranges::any_of(graph.nodes, [&](const Node& node) {
      return node.name.starts_with(prefix) && node.op != "copy" && node.device == Device::kGpu;
    });
  };
  for (const auto& [match, first, second] : {std::tuple{"deep", true, true},
                                             {"deep.0", true, false},
                                             {"deep.1.*", false, true},
                                             {"numbers", false, false}}) {
    JobConfig job = TinyJob(TinyDeepFm());
    job.parallel.place = {{match, Device::kGpu}};
    const Result<Plan> plan = PlanByRules(job);
    ASSERT_TRUE(plan.ok()) << ToText(plan.status());
    EXPECT_EQ(on_gpu(plan->graph, "deep.0."), first) << match;
    EXPECT_EQ(on_gpu(plan->graph, "deep.1."), second) << match;
  }
  JobConfig job = TinyJob(TinyDeepFm());
  job.parallel.place = {{"deep", Device::kGpu},
                        {.match = "dee",
                         .device = Device::kGpu,
                         .mark = {"job.yaml", 12},
                         .path = "parallel.place.1"}};
  EXPECT_THAT(ToText(PlanByRules(job).status()),
              HasSubstr("parallel.place.1: no node or operator matches \"dee\" (job.yaml:12)"));
}

TEST(PlaceRules, MistakesAreToldTogetherAndEachOnce) {
  JobConfig job = TinyJob(TinyDeepFm());
  job.optimizer.device = Device::kGpu;
  job.parallel.place = {{.match = "deep", .device = Device::kGpu, .mark = {"job.yaml", 11}},
                        {.match = "dee", .device = Device::kGpu, .path = "parallel.place.1"}};
  const Status status = MakePlan({job, TinyColumns(), 1}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  const std::string text = ToText(status);
  EXPECT_THAT(text, HasSubstr("parallel.place.1: no node or operator matches \"dee\""));
  EXPECT_THAT(text, HasSubstr("optimizer.device: gpu, and not every worker has"));
  EXPECT_THAT(text, HasSubstr("parallel.place \"deep\" gpu, and not every worker has"));
  EXPECT_THAT(text, HasSubstr("3 problems, nothing started"));
}

TEST(PlaceRules, MeanWeightsAndWhatUpdatesThem) {
  const auto devices = [](const std::vector<PlaceRule>& rules) {
    JobConfig job = TinyJob(TinyDeepFm());
    job.optimizer.spec.kind = OptimizerKind::kAdam;
    job.parallel.place = rules;
    const Result<Plan> plan = PlanByRules(job);
    EXPECT_TRUE(plan.ok()) << ToText(plan.status());
    std::map<std::string, Device> of;
    for (const Value& value : plan->graph.values) of[value.name] = value.device;
    for (const Node& node : plan->graph.nodes) {
      if (node.op == "update")
        of["update of " + plan->graph.value(node.inputs[0]).name] = node.device;
    }
    return of;
  };
  auto of = devices({{"deep", Device::kGpu}});
  for (const char* name : {"deep.0.weight", "deep.1.weight", "update of deep.0.weight"}) {
    EXPECT_EQ(of.at(name), Device::kGpu) << name;
  }
  of = devices({{"deep", Device::kGpu}, {"deep.0", Device::kCpu, Placed::kWeights}});
  for (const char* name : {"deep.0.weight", "deep.0.weight.state0", "update of deep.0.weight"}) {
    EXPECT_EQ(of.at(name), Device::kCpu) << name;
  }
  EXPECT_EQ(of.at("deep.1.weight"), Device::kGpu);
  of = devices({{"deep", Device::kCpu}, {"deep.0", Device::kGpu, Placed::kWeights}});
  EXPECT_EQ(of.at("update of deep.0.weight"), Device::kGpu);
  EXPECT_EQ(of.at("update of deep.1.weight"), Device::kCpu);

  JobConfig job = TinyJob(TinyDeepFm());
  job.parallel.place = {{"dee", Device::kCpu, Placed::kWeights}};
  EXPECT_THAT(ToText(PlanByRules(job).status()), HasSubstr("no weight matches \"dee\""));
  job.parallel.place = {{"deep", Device::kGpu, Placed::kWeights}};
  PlanRequest request{job, TinyColumns(), 1};
  EXPECT_THAT(ToText(MakePlan(request).status()), HasSubstr("weights \"deep\" on gpu, and"));
  job.parallel.place.insert(job.parallel.place.begin(), {"deep", Device::kCpu, Placed::kWeights});
  EXPECT_TRUE(MakePlan(request).ok()) << "the first that matches counts";
  job.parallel.place.erase(job.parallel.place.begin());
  job.parallel.fall_back_to_cpu = true;
  EXPECT_TRUE(MakePlan(request).ok());
}

}  // namespace
}  // namespace dt::scheduler
