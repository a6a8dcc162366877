// Goal: nodes without a rule are placed where the predicted step is shortest, within the
// accelerator's memory and the rules for other nodes; where they may not be placed, nothing
// changes. Method: for small models, every placement, written as rules of the job file, is compared
// with the one found; and all shipped models are placed on devices of several speeds.
#include <cstdio>
#include <ctime>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config/load_job.h"
#include "common/plan/check_plan.h"
#include "ops/op_spec.h"
#include "scheduler/passes/placement/devices.h"
#include "scheduler/plan/plan.h"
#include "scheduler/report/explain.h"
#include "test/support/tiny_model.h"
#include "test/unit/scheduler/passes/placement/placed_models.h"
#include "test/unit/scheduler/plan/shipped_jobs.h"

namespace dt::scheduler {
namespace {

using test::AutomaticJob;
using test::Speeds;
using test::TinyAccelerator;
using test::TinyColumns;
using test::TinyDeepFm;
using test::TinyJob;
using test::TinyNode;
using ::testing::HasSubstr;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kSlower = 20;
#else
constexpr double kSlower = 1;
#endif

using Ints = std::vector<int64_t>;

struct Planned {
  Plan plan;
  PlacementReport report;
};
Planned PlannedOf(PlanRequest request) {
  Planned made;
  request.report = &made.report;
  Result<Plan> plan = MakePlan(request);
  EXPECT_TRUE(plan.ok()) << ToText(plan.status());
  if (plan.ok()) made.plan = *std::move(plan);
  return made;
}

size_t NodesOn(const Graph& graph, Device device) {
  return static_cast<size_t>(std::ranges::count(graph.nodes, device, &Node::device));
}

// ------------------------------------------------------------ the best by the model

struct SmallModel {
  const char* name;
  std::vector<NodeConfig> nodes;
};

std::vector<SmallModel> SmallModels() {
  return {
      {"perceptron", {TinyNode("m", "mlp", {"I1", "I2"}, {{"units", Ints{64, 1}}}, 1)}},
      {"wide and deep",
       {TinyNode("w", "bag", {"tags"}, {{"table", "wide"}}, 1),
        TinyNode("d", "dense", {"I1", "I2"}, {{"units", int64_t{1}}}, 2),
        TinyNode("logit", "add", {"w", "d"}, {}, 3)}},
      {"two readers",
       {TinyNode("e", "bag", {"C1"}, {{"table", "emb"}}, 1), TinyNode("s", "square", {"e"}, {}, 2),
        TinyNode("logit", "dense", {"e", "s"}, {{"units", int64_t{1}}}, 3)}}};
}

// Nodes that the planner places independently; every other node follows one of them.
std::vector<std::string> FreeNodes(const PlacementReport& report) {
  std::vector<std::string> names;
  for (const auto& [name, why] : report.why) {
    if (why != "with its forward node" && why != "where it is read") names.push_back(name);
  }
  return names;
}

// The shortest predicted step among all placements of `names`, written as rules.
double LeastSeconds(JobConfig job, const DeviceProfile& profile,
                    const std::vector<std::string>& names) {
  double least = kNoLimit;
  for (uint64_t bits = 0; bits < uint64_t{1} << names.size(); ++bits) {
    job.parallel.place.clear();
    for (size_t i = 0; i < names.size(); ++i) {
      job.parallel.place.push_back({names[i], (bits >> i) & 1 ? Device::kGpu : Device::kCpu});
    }
    const Planned said = PlannedOf({job, TinyColumns(), 1, TinyAccelerator(1 << 30), profile});
    least = std::min(least, said.report.placement.prediction.seconds);
  }
  return least;
}

TEST(PlaceNodesTest, EqualsTheBestOfAllPlacementsThatRulesCanSay) {
  size_t mixed = 0;
  for (const SmallModel& model : SmallModels()) {
    for (const auto& [faster, link] : {std::pair{20.0, 1e10}, {3.0, 1e9}, {50.0, 1e8}}) {
      SCOPED_TRACE(fmt::format("{}, {} times as fast, {} B/s", model.name, faster, link));
      JobConfig job = AutomaticJob(model.nodes, 4096);
      const DeviceProfile profile = Speeds(faster, link);
      const Planned found = PlannedOf({job, TinyColumns(), 1, TinyAccelerator(1 << 30), profile});
      const std::vector<std::string> names = FreeNodes(found.report);
      ASSERT_GE(names.size(), 4);
      ASSERT_LE(names.size(), 9);
      const double least = LeastSeconds(job, profile, names);
      EXPECT_DOUBLE_EQ(found.report.placement.prediction.seconds, least);
      EXPECT_TRUE(found.report.placement.exact);
      const Graph& graph = found.plan.graph;
      mixed += NodesOn(graph, Device::kGpu) > 0 && NodesOn(graph, Device::kCpu) > 4 ? 1 : 0;
    }
  }
  EXPECT_GT(mixed, 2);
}

// Operators other than products take the same time as in fp32.
TEST(PlaceNodesTest, ProductsTakeTheTimeOfTheirArithmetic) {
  const auto computing = [](const std::string& math, double faster) {
    JobConfig job = AutomaticJob(TinyDeepFm(), 4096);
    job.train.math = math;
    DeviceProfile profile = Speeds(1, 1e9);
    // So slow that the time for reading and writing does not matter.
    for (double& flops : profile.cpu.flops) flops = 1e6;
    profile.cpu.flops[static_cast<size_t>(Arithmetic::kBf16)] *= faster;
    const Planned made = PlannedOf({job, TinyColumns(), 1, std::nullopt, profile});
    return made.report.placement.prediction.computing[kOnCpu];
  };
  EXPECT_EQ(computing("fp32", 100), computing("fp32", 1));
  EXPECT_EQ(computing("bf16", 1), computing("fp32", 1));
  EXPECT_LT(computing("bf16", 100), 0.8 * computing("fp32", 100));
  EXPECT_GT(computing("bf16", 100), 0.01 * computing("fp32", 100));
}

TEST(PlaceNodesTest, WhatIsSaidHoldsAndTheRestFollowsIt) {
  JobConfig job = AutomaticJob(TinyDeepFm(), 4096);
  job.model.nodes[8].device = Device::kGpu;  // The node "deep".
  job.parallel.place = {{"crosses*", Device::kCpu}};
  const Planned made = PlannedOf({job, TinyColumns(), 1, TinyAccelerator(1 << 30), Speeds(5, 1e9)});
  EXPECT_TRUE(CheckPlan(made.plan, TraitsOf).ok());
  for (const Node& node : made.plan.graph.nodes) {
    if (node.phase != Phase::kSlice || node.op == "copy") continue;
    if (node.name.starts_with("deep")) {
      EXPECT_EQ(node.device, Device::kGpu) << node.name;
    }
    if (node.name.starts_with("crosses")) {
      EXPECT_EQ(node.device, Device::kCpu) << node.name;
    }
    if (node.forward == kNone || node.inputs.empty()) continue;
    const Device forward = made.plan.graph.nodes[node.forward].device;
    EXPECT_EQ(node.device, forward) << node.name;
  }
}

// ------------------------------------------------------------ shipped models

struct Machine {
  const char* name;
  DeviceInfo accelerator;
  DeviceProfile profile;
};

std::vector<Machine> Machines() {
  const DeviceInfo card{.kind = DeviceKind::kCuda, .name = "card", .memory_bytes = 64ull << 30};
  return {{"a card beside 16 threads", card, DefaultCardProfile(16)},
          {"a card beside 2 threads", card, DefaultCardProfile(2)},
          {"emulated", TinyAccelerator(4ull << 30), DefaultEmulatedProfile(2)},
          {"fast, behind a slow link", TinyAccelerator(4ull << 30), Speeds(30, 2e8)}};
}

void ExpectPlaced(JobConfig job, const Machine& machine) {
  if (machine.accelerator.kind == DeviceKind::kEmulated) {
    job.cluster.devices = AcceleratorChoice::kEmulated;
  }
  const std::clock_t begin = std::clock();
  const Planned made =
      PlannedOf({job, test::ColumnsOf(job), 1, machine.accelerator, machine.profile});
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_LT(seconds, 1.0 * kSlower);
  EXPECT_TRUE(CheckPlan(made.plan, TraitsOf).ok());
  EXPECT_TRUE(made.report.automatic);
  EXPECT_LE(made.report.accelerator_bytes, made.report.accelerator_limit);
  const Placement& placement = made.report.placement;
  for (const auto& other : placement.alternatives) {
    if (!other.prediction.fits()) continue;
    EXPECT_LE(placement.prediction.seconds, other.prediction.seconds * (1 + 1e-12)) << other.name;
  }
  std::printf("%-18s %-25s %4zu of %4zu nodes on gpu, %.2f s: %s\n", job.job.c_str(), machine.name,
              NodesOn(made.plan.graph, Device::kGpu), made.plan.graph.nodes.size(), seconds,
              placement.summary.c_str());
}

// Each model is placed on one machine, and those that differ most on all of them.
TEST(PlaceNodesTest, EveryShippedModelIsPlacedInUnderASecondNeverWorseThanSimplePlacements) {
  const std::vector<Machine> machines = Machines();
  size_t turn = 0;
  for (const auto& path : test::ShippedJobs()) {
    const Result<JobConfig> job = LoadJob(path.string(), {});
    ASSERT_TRUE(job.ok()) << ToText(job.status());
    const bool on_all = job->job == "criteo_dlrm" || job->job == "frappe_transformer";
    ++turn;
    for (size_t m = 0; m < machines.size(); ++m) {
      if (!on_all && m != turn % machines.size()) continue;
      SCOPED_TRACE(fmt::format("{}, {}", job->job, machines[m].name));
      ExpectPlaced(*job, machines[m]);
    }
  }
}

// ------------------------------------------------------------ who may be chosen

TEST(PlaceNodesTest, AnEmulatedAcceleratorIsChosenOnlyWhereTheJobAsksForIt) {
  JobConfig job = AutomaticJob(TinyDeepFm(), 4096);
  const PlanRequest fast{job, TinyColumns(), 2, TinyAccelerator(), Speeds(50, 1e10)};
  EXPECT_GT(NodesOn(PlannedOf(fast).plan.graph, Device::kGpu), 0);
  job.cluster.devices = AcceleratorChoice::kAuto;
  EXPECT_EQ(PlannedOf(fast).plan, PlannedOf({job, TinyColumns(), 2}).plan);
  job.model.nodes[8].device = Device::kGpu;
  const Graph tagged = PlannedOf(fast).plan.graph;
  for (const Node& node : tagged.nodes) {
    if (node.phase != Phase::kSlice || node.op == "copy") continue;
    const bool of_deep = node.forward == kNone
                             ? node.name.starts_with("deep")
                             : tagged.nodes[node.forward].name.starts_with("deep");
    EXPECT_EQ(node.device, of_deep ? Device::kGpu : Device::kCpu) << node.name;
  }
}

TEST(PlaceNodesTest, ACardIsChosenUnasked) {
  JobConfig job = TinyJob(TinyDeepFm());
  job.train.batch_size = 1 << 16;
  DeviceInfo card = TinyAccelerator(1 << 30);
  card.kind = DeviceKind::kCuda;
  const Planned made = PlannedOf({job, TinyColumns(), 1, card, Speeds(50, 1e10)});
  EXPECT_GT(NodesOn(made.plan.graph, Device::kGpu), 0);
}

TEST(PlaceNodesTest, WeightsOfWorkersApartStayOnTheHost) {
  JobConfig job = AutomaticJob(TinyDeepFm(), 1 << 14);
  job.train.staleness = 2;
  const Planned made =
      PlannedOf({job, TinyColumns(), 1, TinyAccelerator(1 << 30), Speeds(50, 1e10)});
  EXPECT_TRUE(CheckPlan(made.plan, TraitsOf).ok());
  EXPECT_GT(NodesOn(made.plan.graph, Device::kGpu), 0);
  for (const ParameterSpec& p : made.plan.graph.parameters) {
    EXPECT_EQ(made.plan.graph.value(p.value).device, Device::kCpu);
  }
}

TEST(PlaceNodesTest, TheOptimizersDeviceIsKept) {
  JobConfig job = AutomaticJob(TinyDeepFm(), 1 << 14);
  for (const Device optimizer : {Device::kCpu, Device::kGpu}) {
    job.optimizer.device = optimizer;
    const Planned made =
        PlannedOf({job, TinyColumns(), 1, TinyAccelerator(1 << 30), Speeds(20, 1e10)});
    EXPECT_TRUE(CheckPlan(made.plan, TraitsOf).ok());
    for (const Node& node : made.plan.graph.nodes) {
      if (node.op != "update") continue;
      EXPECT_EQ(node.device, optimizer) << node.name;
    }
  }
}

// ------------------------------------------------------------ memory

// The limit holds for the plan's real memory, in which values share memory only if that is safe at
// any relative speed of the streams.
TEST(PlaceNodesTest, LessMemoryTakesLessOfTheAccelerator) {
  const JobConfig job = AutomaticJob(TinyDeepFm(), 1 << 14);
  const DeviceProfile profile = Speeds(50, 1e10);
  const double whole = PlannedOf({job, TinyColumns(), 1, TinyAccelerator(1 << 30), profile})
                           .report.accelerator_bytes;
  ASSERT_GT(whole, 1 << 20);
  for (const double share : {1.0, 0.7, 0.4, 0.1, 0.01}) {
    const auto limit = static_cast<uint64_t>(share * whole);
    const Planned made = PlannedOf({job, TinyColumns(), 1, TinyAccelerator(limit), profile});
    EXPECT_TRUE(CheckPlan(made.plan, TraitsOf).ok());
    EXPECT_LE(made.report.accelerator_bytes, static_cast<double>(limit)) << share;
    if (share > 0.3) {
      EXPECT_GT(made.report.accelerator_bytes, 0) << share;
    }
  }
}

TEST(PlaceNodesTest, TagsThatDoNotFitAreRefusedWithPlaceAndSizesOrFallBack) {
  JobConfig job = TinyJob(TinyDeepFm());
  job.train.batch_size = 1 << 16;
  job.model.nodes[8].device = Device::kGpu;  // The node "deep", on line 9.
  const PlanRequest request{job, TinyColumns(), 1, TinyAccelerator(1 << 20)};
  const Status status = MakePlan(request).status();
  EXPECT_EQ(ExitCodeOf(status), 2);
  const std::string text = ToText(status);
  for (const char* part : {"node \"deep", "model.yaml:9", "does not fit: it needs", "of 1 MiB",
                           "deep.", "train.batch_size", "parallel.fallback"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  job.parallel.fall_back_to_cpu = true;
  const Planned made = PlannedOf(request);
  EXPECT_EQ(NodesOn(made.plan.graph, Device::kGpu), 0);
  EXPECT_THAT(made.report.fallback, HasSubstr("does not fit: it needs"));
  EXPECT_THAT(ExplainPlan(made.plan, job, made.report),
              HasSubstr("tagged at model.yaml:9 gpu, but that does not fit"));
  // With this choice the nodes that fit may be placed there.
  job.cluster.devices = AcceleratorChoice::kEmulated;
  EXPECT_TRUE(CheckPlan(PlannedOf(request).plan, TraitsOf).ok());
}

// ------------------------------------------------------------ what a person is told

TEST(PlaceNodesTest, TheExplanationSaysWhereWhyAndWhatElse) {
  JobConfig job = AutomaticJob(TinyDeepFm(), 1 << 14);
  job.train.slices = 2;
  job.model.nodes[8].device = Device::kGpu;
  job.parallel.place = {{"crosses*", Device::kCpu}};
  const DeviceProfile profile = *ProfileOf(job, TinyAccelerator(), 2);
  const Planned made = PlannedOf({job, TinyColumns(), 2, TinyAccelerator(1 << 30), profile});
  const std::string text = ExplainPlan(made.plan, job, made.report);
  for (const char* part :
       {" a step\n", " for 2 slices: cpu computes ",
        "1 server and 1 worker on one machine: its 1 core works ", ", gpu ", "copies to gpu ",
        "copies to cpu ", "instead: all cpu ", "all gpu ", "greedy ", "memory on gpu: ", "of 1 GiB",
        "shipped default", "tagged at model.yaml:9", "parallel.place \"crosses*\"",
        "with its forward node", "the step would take", "where its weights lie", "read there"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(PlaceNodesTest, ANodeWhoseWeightsAreOnServersComputesWhereItIsBest) {
  JobConfig job =
      AutomaticJob({TinyNode("m", "mlp", {"I1", "I2"}, {{"units", Ints{64, 1}}}, 1)}, 8);
  job.train.staleness = 2;
  PlanRequest request{job, TinyColumns(), 1, TinyAccelerator()};
  request.profile = Speeds(100, 1e12);
  const Planned free = PlannedOf(request);
  job.model.nodes[0].device = Device::kPs;
  const Planned tagged = PlannedOf(request);
  ASSERT_EQ(tagged.plan.graph.nodes.size(), free.plan.graph.nodes.size());
  for (size_t n = 0; n < free.plan.graph.nodes.size(); ++n) {
    EXPECT_EQ(tagged.plan.graph.nodes[n].device, free.plan.graph.nodes[n].device);
  }
  EXPECT_EQ(tagged.report.why.at("m.0.matmul"),
            "tagged at model.yaml:1 ps: its weights are on servers");
}

}  // namespace
}  // namespace dt::scheduler
