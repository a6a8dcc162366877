// Goal: plans are consistent for every shipped model and for a model with every feature; messages
// about mistakes give node, line and likely spelling.
#include "scheduler/plan/plan.h"

#include <algorithm>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config/load_job.h"
#include "common/plan/check_memory.h"
#include "common/plan/check_plan.h"
#include "ops/op_spec.h"
#include "scheduler/plan/pass_list.h"
#include "scheduler/report/explain.h"
#include "test/support/tiny_model.h"
#include "test/unit/scheduler/plan/shipped_jobs.h"

namespace dt::scheduler {
namespace {

using test::ColumnsOf;
using test::ShippedJobs;
using test::TinyColumns;
using test::TinyDeepFm;
using test::TinyJob;
using test::TinyNode;
using ::testing::HasSubstr;

Result<Plan> PlanOf(const JobConfig& job, uint32_t slices = 2) {
  return MakePlan({job, TinyColumns(), slices, test::TinyAccelerator()});
}

TEST(PlanTest, EveryShippedJobPlans) {
  const auto jobs = ShippedJobs();
  ASSERT_GE(jobs.size(), 20u);
  for (const auto& path : jobs) {
    Result<JobConfig> job = LoadJob(path.string(), {});
    ASSERT_TRUE(job.ok()) << path << "\n" << ToText(job.status());
    PlacementReport report;
    PlanRequest request{*job, ColumnsOf(*job), 2};
    request.report = &report;
    const Result<Plan> plan = MakePlan(request);
    ASSERT_TRUE(plan.ok()) << path << "\n" << ToText(plan.status());
    EXPECT_THAT(ExplainPlan(*plan, *job, report), HasSubstr("training subgraph")) << path;
    EXPECT_THAT(SharedRows(*plan), testing::IsEmpty()) << path;
  }
}

TEST(PlanTest, EveryCompositeTogetherPlans) {
  JobConfig job = TinyJob(TinyDeepFm());
  job.optimizer.clip_norm = 1;
  job.optimizer.spec.l2 = 0.1f;
  const Result<Plan> plan = PlanOf(job);
  ASSERT_TRUE(plan.ok()) << ToText(plan.status());
  EXPECT_TRUE(CheckPlan(*plan, TraitsOf).ok());
  for (const TableUse& table : plan->graph.tables) EXPECT_NE(table.row_grad, kNone) << table.name;
  for (const ParameterSpec& p : plan->graph.parameters) {
    EXPECT_EQ(p.trained, p.grad != kNone) << plan->graph.value(p.value).name;
  }
}

TEST(PlanTest, OptimizersForTablesOnlyAreRefusedForDenseParameters) {
  for (const OptimizerInfo& optimizer : kOptimizers) {
    JobConfig job = TinyJob(TinyDeepFm());
    job.optimizer.spec.kind = optimizer.kind;
    const Result<Plan> plan = PlanOf(job);
    ASSERT_EQ(plan.ok(), optimizer.name != "rowwise_adagrad") << optimizer.name;
    if (plan.ok()) continue;
    EXPECT_THAT(std::string(MessageOf(plan.status())),
                HasSubstr("optimizer.name: rowwise_adagrad is for tables; dense parameters take "
                          "adagrad"));
  }
}

TEST(PlanTest, NothingIsPushedToFrozenTables) {
  JobConfig job = TinyJob(TinyDeepFm());
  job.model.tables[0].life.freeze = true;
  const Result<Plan> plan = PlanOf(job);
  ASSERT_TRUE(plan.ok()) << ToText(plan.status());
  EXPECT_TRUE(CheckPlan(*plan, TraitsOf).ok());
  for (const TableUse& table : plan->graph.tables) {
    EXPECT_EQ(table.row_grad == kNone, table.name == job.model.tables[0].name) << table.name;
  }
}

TEST(PlanTest, LookupsOfOneTableShareItsRows) {
  const Result<Plan> plan = PlanOf(TinyJob(TinyDeepFm()));
  ASSERT_TRUE(plan.ok()) << ToText(plan.status());
  EXPECT_EQ(plan->graph.tables.size(), 2u);
  EXPECT_EQ(plan->graph.lookups.size(),
            3u);  // first and e read C* from two tables; taste reads tags.
  const auto rows = std::count_if(plan->graph.inputs.begin(), plan->graph.inputs.end(),
                                  [](const auto& i) { return i.kind == InputKind::kRows; });
  EXPECT_EQ(rows, 2);
}

TEST(PlanTest, EqualRequestsGiveEqualPlans) {
  const JobConfig job = TinyJob(TinyDeepFm());
  EXPECT_EQ(*PlanOf(job), *PlanOf(job));
}

TEST(PlanTest, WhatNeedsNoPulledRowsRunsFirst) {
  const Result<Plan> plan = PlanOf(TinyJob(TinyDeepFm()));
  ASSERT_TRUE(plan.ok());
  const Subgraph& first = plan->train.front();
  const auto has = [&](std::string_view name) {
    return std::any_of(first.nodes.begin(), first.nodes.end(),
                       [&](NodeIndex n) { return plan->graph.nodes[n].name == name; });
  };
  EXPECT_TRUE(has("first.matmul") || has("numbers.0.relu"));
  EXPECT_FALSE(has("e"));
}

// With a bucket for each gradient, every sum begins right after the subgraph that makes it.
TEST(PlanTest, JoinsFollowTheirGradientsInTheOrderOfTheirNumbers) {
  JobConfig job = TinyJob(TinyDeepFm());
  job.parallel.fusion.bytes = 1;
  const Result<Plan> plan = PlanOf(job);
  ASSERT_TRUE(plan.ok());
  std::vector<uint32_t> made(plan->graph.values.size(), kNone);  // By value: its subgraph.
  int64_t number = -1;
  size_t sums = 0, early = 0;
  for (uint32_t s = 0; s < plan->train.size(); ++s) {
    const Subgraph& subgraph = plan->train[s];
    for (const NodeIndex n : subgraph.nodes) {
      const Node& node = plan->graph.nodes[n];
      for (const ValueIndex v : node.outputs) made[v] = s;
      EXPECT_EQ(subgraph.phase == Phase::kJoin, node.op.ends_with("_slices")) << node.name;
      if (subgraph.phase != Phase::kJoin) continue;
      EXPECT_EQ(subgraph.stream, Stream::kComm);
      const int64_t own = IntAttr(node.attrs, "number", -1);
      EXPECT_EQ(own, n == subgraph.nodes.front() ? number + 1 : number) << node.name;
      number = own;
      if (node.op != "sum_slices") continue;
      ++sums;
      EXPECT_LT(made[node.inputs[0]], s);
      early += s + 2 < plan->train.size() && plan->train[s + 1].phase == Phase::kSlice ? 1 : 0;
    }
  }
  EXPECT_GT(sums, 4u);
  EXPECT_GT(early, sums / 2);
}

TEST(PlanTest, SlotsAreSharedAndKeptValuesAreNot) {
  const Result<Plan> plan = PlanOf(TinyJob(TinyDeepFm()));
  ASSERT_TRUE(plan.ok());
  size_t values = 0;
  for (const uint32_t slot : plan->slot) values += slot == kNone ? 0 : 1;
  EXPECT_LT(plan->slot_count, values);
}

// A value that only has another shape takes no memory and no copy.
TEST(PlanTest, AnotherShapeIsTheSameMemory) {
  const Plan good = *PlanOf(TinyJob(TinyDeepFm()));
  const std::vector<ValueIndex> owner = MemoryOwners(GraphIndex(good.graph, TraitsOf));
  size_t shared = 0;
  for (ValueIndex v = 0; v < owner.size(); ++v) {
    if (owner[v] == v) continue;
    ++shared;
    EXPECT_EQ(good.slot[v], good.slot[owner[v]]) << good.graph.value(v).name;
    Plan copied = good;  // A slot of its own is allowed, too.
    copied.slot[v] = copied.slot_count++;
    EXPECT_TRUE(CheckPlan(copied, TraitsOf).ok()) << good.graph.value(v).name;
    // The memory is in use for as long as one of both is read.
    Plan early = good;
    const ValueIndex written = good.graph.nodes[good.graph.value(v).producer + 1].outputs[0];
    early.slot[written] = good.slot[v];
    EXPECT_FALSE(CheckPlan(early, TraitsOf).ok()) << good.graph.value(v).name;
  }
  EXPECT_GE(shared, 2u);
}

TEST(PlanTest, CheckFindsASlotTakenTooEarly) {
  const Plan good = *PlanOf(TinyJob(TinyDeepFm()));
  // Merges each pair of neighbouring slots; some of the merged values are alive at the same time.
  size_t refused = 0;
  for (uint32_t s = 0; s + 1 < good.slot_count; ++s) {
    Plan bad = good;
    for (uint32_t& slot : bad.slot) slot = slot == s + 1 ? s : slot;
    refused += CheckPlan(bad, TraitsOf).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, good.slot_count / 2);
}

TEST(PlanTest, CheckFindsAWrongOrder) {
  const Plan good = *PlanOf(TinyJob(TinyDeepFm()));
  Plan swapped = good;
  std::swap(swapped.train[0], swapped.train.back());
  EXPECT_FALSE(CheckPlan(swapped, TraitsOf).ok());
  Plan missing = good;
  missing.train.pop_back();
  EXPECT_FALSE(CheckPlan(missing, TraitsOf).ok());
}

// Streams run at any relative speed, so data that a stream does not wait for may be missing.
TEST(PlanTest, CheckFindsAMissingWait) {
  JobConfig job = TinyJob(TinyDeepFm());
  job.parallel.place = {{"deep*", Device::kGpu}};
  job.optimizer.device = Device::kCpu;
  const Plan good = *PlanOf(job);
  size_t waits = 0;
  for (size_t s = 0; s < good.train.size(); ++s) {
    for (size_t w = 0; w < good.train[s].waits.size(); ++w) {
      Plan bad = good;
      bad.train[s].waits.erase(bad.train[s].waits.begin() + static_cast<ptrdiff_t>(w));
      EXPECT_FALSE(CheckPlan(bad, TraitsOf).ok()) << good.train[s].name;
      ++waits;
    }
    if (!good.train[s].needs_rows) continue;
    Plan bad = good;
    bad.train[s].needs_rows = false;
    EXPECT_FALSE(CheckPlan(bad, TraitsOf).ok()) << good.train[s].name;
  }
  EXPECT_GT(waits, 3);
}

TEST(PlanTest, CheckFindsAValueOnTheWrongDevice) {
  JobConfig job = TinyJob(TinyDeepFm());
  job.parallel.place = {{"deep*", Device::kGpu}};
  const Plan good = *PlanOf(job);
  for (size_t v = 0; v < good.graph.values.size(); ++v) {
    Plan bad = good;
    Device& device = bad.graph.values[v].device;
    device = device == Device::kCpu ? Device::kGpu : Device::kCpu;
    EXPECT_FALSE(CheckPlan(bad, TraitsOf).ok()) << good.graph.values[v].name;
  }
}

TEST(PlanTest, CheckFindsIdsThatColumnsDoNotHold) {
  const Plan good = *PlanOf(TinyJob(
      {TinyNode("e", "embedding", {"C1", "C2"}, {{"rows", int64_t{9}}, {"dim", int64_t{2}}}),
       TinyNode("logit", "dense", {"e"}, {{"units", int64_t{1}}})}));
  const auto ids = std::ranges::find(good.graph.inputs, InputKind::kIds, &InputSpec::kind);
  ASSERT_NE(ids, good.graph.inputs.end());
  EXPECT_TRUE(CheckPlan(good, TraitsOf).ok());
  const auto refused = [&](auto change) {
    Plan bad = good;
    change(bad, bad.graph.inputs[static_cast<size_t>(ids - good.graph.inputs.begin())]);
    EXPECT_FALSE(CheckPlan(bad, TraitsOf).ok());
  };
  refused([](Plan&, InputSpec& input) { input.first = 1; });
  refused([](Plan&, InputSpec& input) { input.rows.clear(); });
  refused([](Plan&, InputSpec& input) { input.rows = {1, 2, 3}; });
  refused([](Plan&, InputSpec& input) { input.columns = {0}; });  // A label.
  refused([](Plan& plan, InputSpec& input) { plan.graph.values[input.value].shape[1] = Const(3); });
}

TEST(PlanTest, EachPassIsSeen) {
  const JobConfig job = TinyJob(TinyDeepFm());
  std::vector<std::string> passes;
  Plan last;
  const Result<Plan> plan =
      MakePlan({job, TinyColumns(), 2}, [&](std::string_view pass, const Plan& seen) {
        passes.emplace_back(pass);
        EXPECT_EQ(seen.train.empty(), pass != "subgraphs" && pass != "memory_plan") << pass;
        EXPECT_EQ(seen.slot.empty(), pass != "memory_plan") << pass;
        last = seen;
      });
  ASSERT_TRUE(plan.ok()) << ToText(plan.status());
  EXPECT_EQ(last, *plan);
  EXPECT_THAT(passes,
              testing::ElementsAre("expand", "infer", "by_parts", "differentiate", "parallelize",
                                   "add_optimizer", "place", "fuse", "bf16_activations", "copies",
                                   "subgraphs", "memory_plan"));
  EXPECT_EQ(passes, PassNames());
}

TEST(PlanTest, PassesBeforeAMistakeAreSeen) {
  JobConfig job = TinyJob(TinyDeepFm());
  job.parallel.place = {{"nobody", Device::kGpu}};
  std::string last;
  const Result<Plan> plan =
      MakePlan({job, TinyColumns(), 2}, [&](std::string_view pass, const Plan&) { last = pass; });
  EXPECT_EQ(last, "add_optimizer");
  EXPECT_THAT(ToText(plan.status()), HasSubstr("nobody"));
}

// Logistic regression on one column, small enough to read.
TEST(PlanTest, LogisticRegressionAsText) {
  JobConfig job = TinyJob({TinyNode("logit", "linear", {"C1"}, {{"table", "wide"}}, 1)});
  job.optimizer.spec.kind = OptimizerKind::kAdagrad;
  job.optimizer.clip_norm = 10;
  const Result<Plan> plan = PlanOf(job);
  ASSERT_TRUE(plan.ok()) << ToText(plan.status());
  const std::string text = DumpText(plan->graph);
  for (const char* line : {
           "input rows(wide) [U.wide, 1]\n",
           "input index(logit.bag) [B] u32\n",
           "parameter logit.bias [1]\n",
           "state logit.bias.state0 [1]\n",
           ("logit.bag [B, 1] = bag(rows(wide), index(logit.bag), row_ends(logit.bag), "
            "row_order(logit.bag)) {combiner: sum, length: 1, ragged: false, weighted: false} on "
            "cpu\n"),
           "logit.bias_add [B, 1] = bias_add(logit.bag, logit.bias) on cpu\n",
           "loss.label [1] = bce_with_logits(logit.bias_add, label) on cpu\n",
           "sum.logit.bias [1] = sum_slices(",
           "gather.loss.label [2, 1] = gather_slices(loss.label) {group: 0, number: 0, slices: 2, "
           "terms: 0} on cpu "
           "each step\n",
           "push wide <- logit.bag.grad\n",
           "loss label = binary_cross_entropy of logit.bias_add -> loss.label\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(PlanTest, ASingleLastUnitOfAnMlpIsALogit) {
  const JobConfig job = TinyJob({TinyNode(
      "m", "mlp", {"I*"},
      {{"units", std::vector<int64_t>{3, 1}}, {"dropout", 0.5}, {"batch_norm", true}}, 1)});
  const Result<Plan> plan = PlanOf(job);
  ASSERT_TRUE(plan.ok()) << ToText(plan.status());
  const ValueIndex output = plan->graph.losses[0].output;
  EXPECT_EQ(plan->graph.nodes[plan->graph.value(output).producer].op, "dense_layer");
}

TEST(PlanTest, SumAddsFieldsAndAddTakesAnyNumber) {
  const Attrs wide = {{"table", "wide"}};
  const JobConfig job =
      TinyJob({TinyNode("w", "lookup", {"C*"}, wide, 1), TinyNode("first", "sum", {"w"}, {}, 2),
               TinyNode("b", "bag", {"tags"}, wide, 3),
               TinyNode("logit", "add", {"first", "b", "I1"}, {}, 4)});
  const Result<Plan> plan = PlanOf(job);
  ASSERT_TRUE(plan.ok()) << ToText(plan.status());
  EXPECT_THAT(DumpText(plan->graph), HasSubstr("first.fields0 [B, 1] = reduce_sum(w)"));
}

struct Mistake {
  const char* name;
  std::vector<NodeConfig> nodes;
  std::vector<std::string> says;
};

std::vector<Mistake> Mistakes() {
  const Attrs emb = {{"table", "emb"}};
  const Attrs one = {{"units", int64_t{1}}};
  return {
      {"Operator",
       {TinyNode("d", "dens", {"I1"}, one, 5)},
       {"\"d\"", "dens", "\"dense\"", "model.yaml:5"}},
      {"Swap",
       {TinyNode("d", "mpl", {"I1"}, one, 5)},
       {"there is no operator \"mpl\"; did you mean \"mlp\"?"}},
      {"Input",
       {TinyNode("d", "dense", {"I11"}, one, 6)},
       {"\"d\"", "\"I11\"", "\"I1\"", "model.yaml:6"}},
      {"Pattern",
       {TinyNode("d", "dense", {"X*"}, one, 6)},
       {"\"X*\"", "no column", "model.yaml:6"}},
      {"Attribute",
       {TinyNode("d", "dense", {"I1"}, {{"units", int64_t{1}}, {"activaton", "relu"}}, 7)},
       {"model.yaml:7: model.graph.d.activaton: is no attribute of dense", "\"activation\""}},
      {"Missing",
       {TinyNode("d", "dense", {"I1"}, {}, 7)},
       {"model.graph.d.units: missing, dense needs a whole number"}},
      {"Word",
       {TinyNode("d", "dense", {"I1"}, {{"units", int64_t{1}}, {"activation", "reluu"}}, 7)},
       {"reluu", "\"relu\""}},
      {"Type", {TinyNode("d", "dense", {"I1"}, {{"units", "many"}}, 7)}, {"units", "whole number"}},
      {"Range",
       {TinyNode("d", "dense", {"I1"}, {{"units", int64_t{1}}, {"dropout", 1.5}}, 7)},
       {"model.yaml:7: model.graph.d.dropout: found 1.5, expected 0 to"}},
      {"Table",
       {TinyNode("e", "bag", {"C1"}, {{"table", "emp"}}, 8)},
       {"\"emp\"", "\"emb\"", "model.yaml:8"}},
      {"Keys", {TinyNode("d", "dense", {"C1"}, one, 9)}, {"\"C1\"", "keys", "lookup"}},
      {"Numbers", {TinyNode("e", "lookup", {"I1"}, emb, 9)}, {"\"I1\"", "numbers"}},
      {"Ragged", {TinyNode("e", "lookup", {"tags"}, emb, 9)}, {"\"tags\"", "bag"}},
      {"Label", {TinyNode("d", "dense", {"label"}, one, 9)}, {"\"label\"", "not a feature"}},
      {"Shape",
       {TinyNode("d", "dense", {"I1"}, {{"units", int64_t{3}}}, 9)},
       {"\"d\"", "[B, 3]", "[B, 1]", "model.yaml:9", "dense"}},
      {"Infer", {TinyNode("f", "dot", {"I1"}, {}, 9)}, {"\"f\"", "model.yaml:9"}},
      {"Bf16",
       {TinyNode("n", "cast", {"I1"}, {{"to", "bf16"}}, 10), TinyNode("r", "relu", {"n"}, {}, 11)},
       {"node \"r\": relu: input \"n\" holds bf16", "cast it to fp32", "model.yaml:11"}},
      {"To", {TinyNode("n", "cast", {"I1"}, {{"to", "fp16"}}, 10)}, {"allowed: fp32, bf16"}},
      {"Twice",
       {TinyNode("d", "dense", {"I1"}, one, 9), TinyNode("d", "dense", {"I2"}, one, 10)},
       {"taken", "model.yaml:10"}},
      {"Column", {TinyNode("C1", "dense", {"I1"}, one, 9)}, {"column", "rename"}},
      {"Two",
       {TinyNode("a", "densee", {"I1"}, one, 3), TinyNode("b", "dense", {"a"}, one, 4),
        TinyNode("c", "dense", {"I9"}, one, 5), TinyNode("d", "dense", {"I1"}, one, 6)},
       {"model.yaml:3", "model.yaml:5", "2 problems"}},
      {"LargeWeights",
       {TinyNode("d", "mlp", {"I1"}, {{"units", std::vector<int64_t>{1'000'000, 1'000'000}}}, 4)},
       {"node \"d\": its parameter \"d.1.weight\" would be [1000000, 1000000]", "2147483648",
        "model.yaml:4"}},
      {"LargeResult",
       {TinyNode("a", "pad", {"I1"}, {{"after", int64_t{99'999}}}, 3),
        TinyNode("b", "reshape", {"a"}, {{"shape", std::vector<int64_t>{-1, 100'000, 1}}}, 4),
        TinyNode("c", "reshape", {"a"}, {{"shape", std::vector<int64_t>{-1, 1, 100'000}}}, 5),
        TinyNode("d", "mul", {"b", "c"}, {}, 6)},
       {"node \"d\": its result would be [B, 100000, 100000]", "model.yaml:6"}},
      {"LargePad",
       {TinyNode("d", "pad", {"I1"}, {{"after", std::numeric_limits<int64_t>::max()}}, 4)},
       {"node \"d\": ", "pad", "model.yaml:4"}},
      {"LargeReshape",
       {TinyNode("d", "reshape", {"I1"},
                 {{"shape", std::vector<int64_t>{std::numeric_limits<int64_t>::min(), 1 << 30}}},
                 4)},
       {"node \"d\": reshape", "model.yaml:4"}},
      {"BehindABrokenOne",
       {TinyNode("e", "lookup", {"C1"}, {{"table", "nosuch"}}, 3),
        TinyNode("d", "densee", {"e"}, one, 4),
        TinyNode("f", "dense", {"e"}, {{"unitss", int64_t{1}}}, 5),
        TinyNode("g", "dense", {"f"}, one, 6)},
       {"model.yaml:3", "node \"d\": ", "model.yaml:4", "model.yaml:5: model.graph.f.unitss",
        "model.yaml:5: model.graph.f.units: missing", "4 problems"}},
  };
}

TEST(PlanMistakeTest, IsNamedWithPlaceAndLikelySpelling) {
  for (const Mistake& mistake : Mistakes()) {
    const Result<Plan> plan = PlanOf(TinyJob(mistake.nodes));
    ASSERT_FALSE(plan.ok()) << mistake.name;
    EXPECT_EQ(ExitCodeOf(plan.status()), 2) << mistake.name;
    for (const std::string& word : mistake.says) {
      EXPECT_THAT(ToText(plan.status()), HasSubstr(word)) << mistake.name;
    }
  }
}

TEST(PlanMistakeTest, AllOfOneNodeAreTold) {
  const NodeConfig node =
      TinyNode("d", "dense", {"I1"}, {{"unitss", int64_t{1}}, {"dropout", 1.5}}, 7);
  EXPECT_EQ(MessageOf(PlanOf(TinyJob({node})).status()),
            "model.yaml:7: model.graph.d.dropout: found 1.5, expected 0 to 0.999\n"
            "model.yaml:7: model.graph.d.unitss: is no attribute of dense; did you mean "
            "\"units\"?\n"
            "model.yaml:7: model.graph.d.units: missing, dense needs a whole number\n"
            "3 problems, nothing started");
}

TEST(PlanMistakeTest, DevicesThatAreNotThereAreRefusedOrFallBack) {
  JobConfig job = TinyJob({TinyNode("d", "dense", {"I1"}, {{"units", int64_t{1}}}, 4)});
  job.model.nodes[0].device = Device::kGpu;
  const PlanRequest request{job, TinyColumns(), 1};
  const Status status = MakePlan(request).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ToText(status), HasSubstr("model.yaml:4"));
  EXPECT_THAT(ToText(status), HasSubstr("parallel.fallback"));
  job.parallel.fall_back_to_cpu = true;
  const Result<Plan> plan = MakePlan(request);
  ASSERT_TRUE(plan.ok());
  for (const Node& node : plan->graph.nodes) EXPECT_EQ(node.device, Device::kCpu) << node.name;
}

TEST(PlanMistakeTest, LossWithoutLabelSaysSo) {
  JobConfig job = TinyJob({TinyNode("d", "dense", {"I1"}, {{"units", int64_t{1}}}, 4)});
  job.model.losses[0].label = "labels";
  EXPECT_THAT(ToText(PlanOf(job).status()), HasSubstr("did you mean \"label\""));
  job.model.losses[0].label = "C1";
  EXPECT_THAT(ToText(PlanOf(job).status()), HasSubstr("no label"));
  job.model.losses.clear();
  EXPECT_THAT(ToText(PlanOf(job).status()), HasSubstr("no loss"));
}

}  // namespace
}  // namespace dt::scheduler
