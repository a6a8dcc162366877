// Goal: passes treat tables on workers (`device: cpu` and `device: gpu`) correctly, and the
// location of a table changes no bit. Method: the reference interpreter on plans of the same model.
#include <algorithm>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/op_spec.h"
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

constexpr uint64_t kTablesSeed = 7;
constexpr RunInfo kRun{.seed = kTablesSeed, .step = 3, .step_samples = 9, .lr_scale = 0.5f};

JobConfig JobWithTablesOn(Device emb, Device wide) {
  JobConfig job = test::TinyJob(test::TinyDeepFm());
  job.model.tables[0].device = emb;
  job.model.tables[0].optimizer.l2 = 0.01f;
  job.model.tables[0].mark = {"model.yaml", 40};
  job.model.tables[1].device = wide;
  job.model.tables[1].scheduled = false;
  job.model.tables[1].optimizer.kind = OptimizerKind::kFtrl;
  return job;
}

Plan PlanOfTables(const JobConfig& job, uint32_t slices = 1) {
  Result<Plan> plan = MakePlan({.job = job,
                                .columns = TinyColumns(),
                                .slices = slices,
                                .accelerator = test::TinyAccelerator(),
                                .workers = job.cluster.workers});
  EXPECT_TRUE(plan.ok()) << ToText(plan.status());
  return plan.ok() ? *std::move(plan) : Plan();
}

const Node& NodeNamed(const Graph& graph, std::string_view name) {
  const auto found = std::ranges::find(graph.nodes, name, &Node::name);
  EXPECT_NE(found, graph.nodes.end()) << name;
  return *found;
}

TEST(WorkerTables, ATableLiesAndIsUpdatedOnItsDevice) {
  const Plan plan = PlanOfTables(JobWithTablesOn(Device::kGpu, Device::kCpu));
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
  // No rows come from servers, so nothing waits for them.
  EXPECT_TRUE(std::ranges::none_of(plan.train, &Subgraph::needs_rows));
  EXPECT_TRUE(std::ranges::none_of(plan.evaluate, &Subgraph::needs_rows));
}

bool JoinsRows(const Node& node) { return node.op == "sum_rows"; }

TEST(WorkerTables, BesideOnesOnServersThoseStillWait) {
  const Plan plan = PlanOfTables(JobWithTablesOn(Device::kCpu, Device::kPs));
  EXPECT_TRUE(std::ranges::any_of(plan.train, &Subgraph::needs_rows));
  const auto wide = std::ranges::find(plan.graph.tables, "wide", &TableUse::name);
  EXPECT_NE(wide->row_grad, kNone);
  EXPECT_EQ(wide->store, kNone);
}

TEST(WorkerTables, AFrozenOneIsOnlyRead) {
  JobConfig job = JobWithTablesOn(Device::kCpu, Device::kCpu);
  job.model.tables[0].life.freeze = true;
  const Plan plan = PlanOfTables(job);
  EXPECT_TRUE(std::ranges::none_of(plan.graph.nodes,
                                   [](const Node& node) { return node.name == "update.emb"; }));
  NodeNamed(plan.graph, "update.wide");
}

// The bytes of everything that survives two steps, by name: weights, optimizer states, tables.
std::map<std::string, std::vector<std::byte>> AfterSteps(const Plan& plan) {
  TaskPool pool(1);
  Tensors parameters = FirstParameters(plan.graph, kTablesSeed);
  Interpreter interpreter(plan.graph, pool);
  RunInfo run = kRun;
  for (; run.step < kRun.step + 2; ++run.step) {
    std::vector<SliceData> slices;
    for (uint32_t k = 0; k < plan.slices; ++k) {
      slices.push_back(RandomSlice(plan.graph, 9 - k, 8 * run.step + k));
    }
    interpreter.RunStep(slices, parameters, run);
  }
  std::map<std::string, std::vector<std::byte>> lasting;
  for (const auto& [value, tensor] : parameters) {
    if (plan.graph.value(value).kind == ValueKind::kReplica) continue;
    lasting[plan.graph.value(value).name] = tensor.bytes;
  }
  return lasting;
}

TEST(WorkerTables, WhereATableLiesChangesNoBit) {
  for (const uint32_t slices : {1, 3}) {
    SCOPED_TRACE(slices);
    const auto want = AfterSteps(PlanOfTables(JobWithTablesOn(Device::kCpu, Device::kCpu), slices));
    ASSERT_TRUE(want.contains("table(emb)"));
    for (const auto& [emb, wide] :
         {std::pair{Device::kGpu, Device::kCpu}, std::pair{Device::kCpu, Device::kGpu},
          std::pair{Device::kGpu, Device::kGpu}}) {
      EXPECT_EQ(AfterSteps(PlanOfTables(JobWithTablesOn(emb, wide), slices)), want);
    }
    JobConfig all = JobWithTablesOn(Device::kGpu, Device::kGpu);
    all.parallel.place = {{"*", Device::kGpu}};
    EXPECT_EQ(AfterSteps(PlanOfTables(all, slices)), want);
  }
}

TEST(WorkerTables, OrderAndMemoryGiveTheSameBits) {
  JobConfig job = JobWithTablesOn(Device::kGpu, Device::kCpu);
  const Plan plan = PlanOfTables(job);
  TaskPool pool(1);
  Tensors parameters = FirstParameters(plan.graph, kTablesSeed);
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

// Gradients are copied from the accelerator, joined on the CPU, and copied back for the update.
TEST(WorkerTables, RowsOfSeveralSlicesOrWorkersAreJoined) {
  const JobConfig job = JobWithTablesOn(Device::kGpu, Device::kCpu);
  JobConfig workers = job;
  workers.cluster.workers = 3;
  for (const Plan& plan : {PlanOfTables(job, 4), PlanOfTables(workers)}) {
    const Graph& graph = plan.graph;
    for (const auto& [table, device] :
         {std::pair{"emb", Device::kGpu}, std::pair{"wide", Device::kCpu}}) {
      const Node& sum = NodeNamed(graph, fmt::format("sum.rows({})", table));
      const Node& update = NodeNamed(graph, fmt::format("update.{}", table));
      EXPECT_EQ(sum.device, Device::kCpu);
      EXPECT_EQ(sum.phase, Phase::kJoin);
      EXPECT_EQ(update.device, device);
      const Value& grads = graph.value(update.inputs[2]);
      EXPECT_EQ(graph.symbols[grads.shape[0].symbol], fmt::format("S.{}", table));
      const bool copied = graph.nodes[grads.producer].op == "copy";
      EXPECT_EQ(copied, device == Device::kGpu);
      EXPECT_EQ(graph.nodes[graph.value(sum.inputs[0]).producer].op == "copy", copied);
    }
    // The last join contains both of them, and waits for all streams of the slice.
    const auto behind = std::ranges::find(plan.train, Phase::kStep, &Subgraph::phase);
    ASSERT_NE(behind, plan.train.begin());
    const Subgraph& last = *std::prev(behind);
    const auto joins = [&](NodeIndex n) { return JoinsRows(graph.nodes[n]); };
    EXPECT_EQ(std::ranges::count_if(last.nodes, joins), 2);
    EXPECT_EQ(last.waits.size(), 4u);
  }
  EXPECT_TRUE(std::ranges::none_of(PlanOfTables(job).graph.nodes, JoinsRows));
}

TEST(WorkerTables, OneOnGpuNeedsAnAcceleratorOrAFallback) {
  JobConfig job = JobWithTablesOn(Device::kGpu, Device::kPs);
  const PlanRequest without{.job = job, .columns = TinyColumns()};
  EXPECT_THAT(ToText(MakePlan(without).status()), HasSubstr("model.yaml:40"));
  job.parallel.fall_back_to_cpu = true;
  const Result<Plan> plan = MakePlan(without);
  ASSERT_TRUE(plan.ok()) << ToText(plan.status());
  const auto emb = std::ranges::find(plan->graph.tables, "emb", &TableUse::name);
  EXPECT_EQ(plan->graph.value(emb->store).device, Device::kCpu);
}

TEST(WorkerTables, ARuleThatPlacesOneIsNamed) {
  JobConfig job = JobWithTablesOn(Device::kGpu, Device::kCpu);
  job.model.tables[0].place_match = "e*";
  job.model.tables[0].place_mark = {"job.yaml", 12};
  PlacementReport report;
  PlanRequest request{.job = job,
                      .columns = TinyColumns(),
                      .accelerator = test::TinyAccelerator(),
                      .report = &report};
  ASSERT_TRUE(MakePlan(request).ok());
  EXPECT_EQ(report.why.find("rows(emb)")->second, "parallel.place \"e*\" at job.yaml:12");
  EXPECT_THAT(report.why.find("rows(wide)")->second, HasSubstr("tagged"));
  request.accelerator.reset();
  EXPECT_THAT(ToText(MakePlan(request).status()),
              HasSubstr("parallel.place \"e*\" gpu, and not every worker has an accelerator "
                        "(job.yaml:12)"));
}

}  // namespace
}  // namespace dt::scheduler
