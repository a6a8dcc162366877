// Tables on the worker: what the passes make of `device: cpu` and `device: gpu`, and that where a
// table lies changes no bit. Method: the reference interpreter on plans of the same model.
#include <algorithm>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/update/update.h"
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
using ::testing::HasSubstr;

constexpr uint64_t kSeed = 7;
constexpr RunInfo kRun{.seed = kSeed, .step = 3, .step_samples = 9, .rate_scale = 0.5f};

JobConfig JobWith(Device emb, Device wide) {
  JobConfig job = test::TinyJob(test::TinyDeepFm());
  job.model.tables[0].device = emb;
  job.model.tables[0].optimizer.l2 = 0.01f;
  job.model.tables[0].mark = {"model.yaml", 40};
  job.model.tables[1].device = wide;
  job.model.tables[1].scheduled = false;
  job.model.tables[1].optimizer.kind = OptimizerKind::kFtrl;
  return job;
}

Plan PlanOf(const JobConfig& job) {
  Result<Plan> plan = MakePlan({job, TinyColumns(), 1, test::TinyAccelerator()});
  EXPECT_TRUE(plan.ok()) << ToText(plan.status());
  return plan.ok() ? *std::move(plan) : Plan();
}

const Node& NodeNamed(const Graph& graph, std::string_view name) {
  const auto found = std::ranges::find(graph.nodes, name, &Node::name);
  EXPECT_NE(found, graph.nodes.end()) << name;
  return *found;
}

TEST(WorkerTables, ATableLiesAndIsUpdatedOnItsDevice) {
  const Plan plan = PlanOf(JobWith(Device::kGpu, Device::kCpu));
  const Graph& graph = plan.graph;
  for (const auto& [table, device] :
       {std::pair{"emb", Device::kGpu}, std::pair{"wide", Device::kCpu}}) {
    const auto use = std::ranges::find(graph.tables, table, &TableUse::name);
    ASSERT_NE(use, graph.tables.end());
    EXPECT_EQ(graph.value(use->store).device, device) << table;
    EXPECT_EQ(NodeNamed(graph, fmt::format("rows({})", table)).device, device);
    const Node& update = NodeNamed(graph, fmt::format("update.{}", table));
    EXPECT_EQ(update.device, device);
    EXPECT_EQ(update.phase, Phase::kStep);
    EXPECT_EQ(use->row_grad, kNone);
  }
  // Nothing comes from servers, so nothing waits for it.
  EXPECT_TRUE(std::ranges::none_of(plan.train, &Subgraph::needs_rows));
  EXPECT_TRUE(std::ranges::none_of(plan.evaluate, &Subgraph::needs_rows));
}

TEST(WorkerTables, BesideOnesOnServersThoseStillWait) {
  const Plan plan = PlanOf(JobWith(Device::kCpu, Device::kPs));
  EXPECT_TRUE(std::ranges::any_of(plan.train, &Subgraph::needs_rows));
  const auto wide = std::ranges::find(plan.graph.tables, "wide", &TableUse::name);
  EXPECT_NE(wide->row_grad, kNone);
  EXPECT_EQ(wide->store, kNone);
}

TEST(WorkerTables, AFrozenOneIsOnlyRead) {
  JobConfig job = JobWith(Device::kCpu, Device::kCpu);
  job.model.tables[0].life.freeze = true;
  const Plan plan = PlanOf(job);
  EXPECT_TRUE(std::ranges::none_of(plan.graph.nodes,
                                   [](const Node& node) { return node.name == "update.emb"; }));
  NodeNamed(plan.graph, "update.wide");
}

// By name, the bytes of all that lasts after one step: weights, state, tables.
std::map<std::string, std::vector<std::byte>> AfterAStep(const Plan& plan) {
  TaskPool pool(1);
  Tensors parameters = FirstParameters(plan.graph, kSeed);
  Interpreter(plan.graph, pool).RunStep({RandomSlice(plan.graph, 9, 4)}, parameters, kRun);
  std::map<std::string, std::vector<std::byte>> lasting;
  for (const auto& [value, tensor] : parameters) {
    if (plan.graph.value(value).kind == ValueKind::kReplica) continue;
    lasting[plan.graph.value(value).name] = tensor.bytes;
  }
  return lasting;
}

TEST(WorkerTables, WhereATableLiesChangesNoBit) {
  const auto want = AfterAStep(PlanOf(JobWith(Device::kCpu, Device::kCpu)));
  ASSERT_TRUE(want.contains("table(emb)"));
  for (const auto& [emb, wide] :
       {std::pair{Device::kGpu, Device::kCpu}, std::pair{Device::kCpu, Device::kGpu},
        std::pair{Device::kGpu, Device::kGpu}}) {
    EXPECT_EQ(AfterAStep(PlanOf(JobWith(emb, wide))), want);
  }
  JobConfig all = JobWith(Device::kGpu, Device::kGpu);
  all.parallel.place = {{"*", Device::kGpu}};
  EXPECT_EQ(AfterAStep(PlanOf(all)), want);
}

TEST(WorkerTables, OrderAndMemoryGiveTheSameBits) {
  JobConfig job = JobWith(Device::kGpu, Device::kCpu);
  const Plan plan = PlanOf(job);
  TaskPool pool(1);
  Tensors parameters = FirstParameters(plan.graph, kSeed);
  const SliceData slice = RandomSlice(plan.graph, 9, 4);
  const Tensors own = Interpreter(plan.graph, pool).RunSlice(slice, parameters, kRun);
  const std::vector<bool> kept = KeptValues(plan.graph);
  const Tensors slots = test::RunOnSlots({plan, plan.train, kept}, slice, parameters, kRun);
  size_t compared = 0;
  for (const Node& node : plan.graph.nodes) {
    if (node.op != "update_rows") continue;
    for (const ValueIndex v : {node.inputs[1], node.inputs[2], node.inputs[3]}) {
      EXPECT_EQ(slots.at(v), own.at(v)) << plan.graph.value(v).name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 6u);
}

TEST(WorkerTables, SeveralSlicesOrWorkersAreRefusedWithAWayOut) {
  JobConfig job = JobWith(Device::kPs, Device::kPs);
  EXPECT_TRUE(MakePlan({job, TinyColumns(), 2, test::TinyAccelerator()}).ok());
  job = JobWith(Device::kCpu, Device::kPs);
  const Status sliced = MakePlan({job, TinyColumns(), 2, test::TinyAccelerator()}).status();
  EXPECT_THAT(ToText(sliced),
              HasSubstr("table \"emb\" on cpu is not available yet with 1 workers"));
  EXPECT_THAT(ToText(sliced), HasSubstr("model.yaml:40"));
  EXPECT_THAT(ToText(sliced), HasSubstr("model.tables.emb.device to ps"));
  job.cluster.workers = 3;
  EXPECT_THAT(ToText(MakePlan({job, TinyColumns(), 1, test::TinyAccelerator()}).status()),
              HasSubstr("3 workers"));
}

TEST(WorkerTables, OneOnGpuNeedsAnAcceleratorOrAFallback) {
  JobConfig job = JobWith(Device::kGpu, Device::kPs);
  const PlanRequest without{.job = job, .columns = TinyColumns()};
  EXPECT_THAT(ToText(MakePlan(without).status()), HasSubstr("model.yaml:40"));
  job.parallel.fall_back_to_cpu = true;
  const Result<Plan> plan = MakePlan(without);
  ASSERT_TRUE(plan.ok()) << ToText(plan.status());
  const auto emb = std::ranges::find(plan->graph.tables, "emb", &TableUse::name);
  EXPECT_EQ(plan->graph.value(emb->store).device, Device::kCpu);
}

}  // namespace
}  // namespace dt::scheduler
