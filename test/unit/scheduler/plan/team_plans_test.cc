// Goal: the plans of a team fit together, and plans that do not are refused by name. Method: real
// plans of small models under several strategies; then one of them is changed as a bug would: two
// communications in another order, one missing, one over other workers, one of another size.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/check.h"
#include "common/plan/check_team.h"
#include "common/plan/plan_codec.h"
#include "ops/op_spec.h"
#include "scheduler/plan/plan.h"
#include "test/support/tiny_model.h"

namespace dt::scheduler {
namespace {

using ::testing::HasSubstr;

std::vector<Plan> PlansOf(JobConfig job, uint32_t devices, bool shard = false) {
  job.cluster.workers = devices;
  job.parallel.data = 1;
  job.parallel.optimizer = {.on = shard, .threshold_bytes = 0};
  PlanRequest request{job, test::TinyColumns(), 2};
  request.workers = devices;
  const Result<TeamPlans> plans = MakePlans(request, [](std::string_view, const Plan&) {});
  EXPECT_TRUE(plans.ok()) << ToText(plans.status());
  if (!plans.ok()) return {};
  // Positions with equal shapes share a plan, which then is what it would be if made for each.
  for (uint32_t p = 0; p < devices; ++p) {
    PlanRequest own = request;
    own.position = p;
    EXPECT_EQ(MakePlan(own).value(), plans->At(p)) << "worker " << p << " of " << devices;
  }
  return plans->All();
}

JobConfig CutJob() {
  JobConfig job = test::TinyJob(test::TinyDeepFm());
  job.optimizer.clip_norm = 0;
  for (const auto& [match, strategy] :
       {std::pair{"deep.0.matmul", "((2,2),(2,1))"}, std::pair{"deep.1.matmul", "((1,4),(4,1))"},
        std::pair{"deep.1.bias_add", "((1,1),(1))"}}) {
    job.parallel.cut.push_back({.match = match, .strategy = *ParseStrategy(strategy), .out = {}});
  }
  return job;
}

// The subgraphs of communication of a pass, in order.
std::vector<size_t> CallsOf(const std::vector<Subgraph>& pass) {
  std::vector<size_t> calls;
  for (size_t s = 0; s < pass.size(); ++s) {
    if (pass[s].stream == Stream::kComm) calls.push_back(s);
  }
  return calls;
}

// Whether a worker other than this one takes part in both.
bool MeetElsewhere(const Plan& plan, NodeIndex a, NodeIndex b) {
  const auto members = [&](NodeIndex n) {
    const auto group = static_cast<size_t>(IntAttr(plan.graph.nodes[n].attrs, "group", 0));
    return plan.graph.groups[group].members;
  };
  const std::vector<uint32_t> first = members(a), second = members(b);
  return std::ranges::any_of(first, [&](uint32_t m) {
    return m != plan.position && std::ranges::find(second, m) != second.end();
  });
}

Node& FirstOf(Plan& plan, std::string_view op) {
  const auto node = std::ranges::find(plan.graph.nodes, op, &Node::op);
  DT_CHECK(node != plan.graph.nodes.end());
  return *node;
}

// Adds a group of these positions and makes it the attribute of the first such node.
void SetGroup(Plan& plan, std::string_view op, const char* attr, std::vector<uint32_t> members) {
  FirstOf(plan, op).attrs[attr] = std::ssize(plan.graph.groups);
  plan.graph.groups.push_back({std::move(members)});
}

TEST(TeamPlans, FitTogether) {
  for (const uint32_t devices : {2, 3, 4, 6}) {
    for (const bool shard : {false, true}) {
      JobConfig job = test::TinyJob(test::TinyDeepFm());
      job.optimizer.clip_norm = 0;
      const std::vector<Plan> plans = PlansOf(job, devices, shard);
      EXPECT_EQ(plans.size(), devices);
      EXPECT_EQ(ToText(CheckTeam(plans, TraitsOf)), "");
    }
  }
  const std::vector<Plan> plans = PlansOf(CutJob(), 4, true);
  EXPECT_GT(CallsOf(plans[0].train).size(), 4u);
  for (const Plan& plan : plans) {
    const std::string bytes = Encode(plan);
    const Result<Plan> back = DecodePlan(std::as_bytes(std::span(bytes)), TraitsOf);
    ASSERT_TRUE(back.ok()) << ToText(back.status());
    EXPECT_EQ(*back, plan);
  }
}

// Five columns on three workers: two of them have equal shapes, and different random numbers.
TEST(TeamPlans, WorkersWithEqualShapesShareAPlan) {
  JobConfig job = test::TinyJob(test::TinyDeepFm());
  job.optimizer.clip_norm = 0;
  for (const auto& [match, strategy] :
       {std::pair{"deep.0.matmul", "((1,1),(1,3))"}, std::pair{"deep.0.dropout", "((1,3))"}}) {
    job.parallel.cut.push_back({.match = match, .strategy = *ParseStrategy(strategy), .out = {}});
  }
  const std::vector<Plan> plans = PlansOf(job, 3, true);
  ASSERT_EQ(plans.size(), 3u);
  std::set<std::vector<int64_t>> firsts;
  for (const Plan& plan : plans) {
    const auto dropout = std::ranges::find(plan.graph.nodes, "deep.0.dropout", &Node::name);
    ASSERT_NE(dropout, plan.graph.nodes.end());
    firsts.insert(IntsAttr(dropout->attrs, "first"));
  }
  EXPECT_EQ(firsts, (std::set<std::vector<int64_t>>{{0, 0}, {0, 2}, {0, 4}}));
  JobConfig large = job;
  large.cluster.workers = 3;
  large.parallel.data = 1;
  PlanRequest request{large, test::TinyColumns(), 2};
  request.workers = 3;
  const Result<TeamPlans> team = MakePlans(request, [](std::string_view, const Plan&) {});
  ASSERT_TRUE(team.ok()) << ToText(team.status());
  EXPECT_EQ(team->different(), 2u);
}

TEST(TeamPlans, EverySwapOfTwoCommunicationsIsFound) {
  const std::vector<Plan> plans = PlansOf(CutJob(), 4);
  ASSERT_EQ(plans.size(), 4u);
  size_t swaps = 0;
  for (const auto pass : {&Plan::train, &Plan::evaluate}) {
    const std::vector<size_t> calls = CallsOf(plans[2].*pass);
    for (size_t i = 0; i + 1 < calls.size(); ++i) {
      std::vector<Plan> swapped = plans;
      std::vector<Subgraph>& subgraphs = swapped[2].*pass;
      NodeIndex& a = subgraphs[calls[i]].nodes.back();
      NodeIndex& b = subgraphs[calls[i + 1]].nodes.front();
      if (!MeetElsewhere(swapped[2], a, b)) continue;
      std::swap(a, b);
      const Status status = CheckTeam(swapped, TraitsOf);
      EXPECT_THAT(ToText(status), HasSubstr("workers would wait for one another: \"")) << i;
      ++swaps;
    }
  }
  EXPECT_GT(swaps, 4u);
}

TEST(TeamPlans, AMissingMemberIsNamed) {
  std::vector<Plan> plans = PlansOf(CutJob(), 4);
  ASSERT_EQ(plans.size(), 4u);
  Node& node = FirstOf(plans[3], "all_reduce");
  node.attrs["number"] = int64_t{9999};
  EXPECT_THAT(ToText(CheckTeam(plans, TraitsOf)),
              HasSubstr("waits for worker 3, which has no such communication"));
}

TEST(TeamPlans, OtherGroupsOperatorsTypesAndSizesAreNamed) {
  const std::vector<Plan> good = PlansOf(CutJob(), 4);
  ASSERT_EQ(good.size(), 4u);
  const auto told = [&](const std::function<void(Plan&)>& change) {
    std::vector<Plan> plans = good;
    change(plans[1]);
    return ToText(CheckTeam(plans, TraitsOf));
  };
  EXPECT_THAT(told([](Plan& plan) { SetGroup(plan, "all_reduce", "group", {1}); }),
              HasSubstr("of worker 1 is all_reduce over [1]"));
  EXPECT_THAT(told([](Plan& plan) {
                const auto group = IntAttr(FirstOf(plan, "all_reduce").attrs, "group", 0);
                plan.graph.groups[static_cast<size_t>(group)].members = {2, 3};
              }),
              HasSubstr("differs"));
  EXPECT_THAT(told([](Plan& plan) {
                const auto group = IntAttr(FirstOf(plan, "all_reduce").attrs, "group", 0);
                plan.graph.groups[static_cast<size_t>(group)].members.push_back(3);
              }),
              HasSubstr("differs"));
  EXPECT_THAT(told([](Plan& plan) { FirstOf(plan, "all_reduce").op = "all_gather"; }),
              HasSubstr("is all_gather over"));
  EXPECT_THAT(told([](Plan& plan) {
                plan.graph.values[FirstOf(plan, "all_reduce").inputs[0]].dtype = DType::kBf16;
              }),
              HasSubstr("of worker 1 is all_reduce"));
  EXPECT_THAT(told([](Plan& plan) {
                plan.graph.values[FirstOf(plan, "all_reduce").inputs[0]].shape.back().times += 1;
              }),
              HasSubstr("at worker 1"));
  EXPECT_THAT(told([](Plan& plan) { SetGroup(plan, "sum_slices", "terms", {1}); }),
              HasSubstr("whose exchange differs"));
  EXPECT_THAT(told([](Plan& plan) { plan.position = 2; }),
              HasSubstr("plan 1 is for worker 2 of 4"));
}

}  // namespace
}  // namespace dt::scheduler
