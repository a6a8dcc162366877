#include "scheduler/parallel/node_cut.h"

#include <gtest/gtest.h>

#include "ops/op_spec.h"

namespace dt::scheduler {
namespace {

Sharding RuleOf(std::string_view text, std::vector<SymShape> inputs) {
  ShardingText rule{.name = "test", .text = text, .inputs = std::move(inputs)};
  Result<Sharding> sharding = ReadSharding(rule);
  EXPECT_TRUE(sharding.ok()) << sharding.status();
  return *std::move(sharding);
}

SymShape Of(std::vector<int64_t> numbers) {
  SymShape shape;
  for (const int64_t n : numbers) shape.push_back(Const(n));
  return shape;
}

const Sharding& Matmul() {
  static const Sharding rule = RuleOf("&ak,&kb->ab", {Of({16, 784}), Of({784, 512})});
  return rule;
}

std::string ProblemOf(const Sharding& rule, const Strategy& strategy, uint32_t devices) {
  const auto cut = CutOf(rule, strategy, devices);
  const auto* problem = std::get_if<CutProblem>(&cut);
  return problem == nullptr ? "" : problem->rule + ": " + problem->what;
}

TEST(NodeCut, AnAxisForEachLoop) {
  const NodeCut cut = std::get<NodeCut>(CutOf(Matmul(), {{{2}, {4}}, {{4}, {1}}}, 8));
  EXPECT_EQ(cut.matrix, (DeviceMatrix{2, 4, 1}));
  EXPECT_EQ(cut.loops, (std::vector<AxisList>{{0}, {1}, {}}));
  const NodeLayouts layouts = LayoutsOf(Matmul(), cut);
  EXPECT_EQ(LocalShape(layouts.inputs[0], {16, 784}, 5), (Shape{8, 196}));
  EXPECT_EQ(LocalShape(layouts.inputs[1], {784, 512}, 5), (Shape{196, 512}));
  EXPECT_EQ(layouts.outputs[0].partial, AxisList{1});
  EXPECT_EQ(GradientAxes(Matmul(), cut), (std::vector<AxisList>{{}, {0}}));
}

TEST(NodeCut, DevicesThatAreNotUsedHoldCopies) {
  const Strategy strategy = {{{2}, {2}}};
  EXPECT_EQ(std::get<NodeCut>(CutOf(Matmul(), strategy, 12)).matrix, (DeviceMatrix{2, 2, 1, 3}));
  EXPECT_EQ(std::get<NodeCut>(CutOf(Matmul(), strategy, 12, true)).matrix,
            (DeviceMatrix{3, 2, 2, 1}));
}

TEST(NodeCut, ReadingAndWritingAStrategyAgree) {
  for (const std::vector<uint32_t>& parts : AllParts(Matmul(), 12)) {
    const NodeCut cut = CutOfParts(Matmul(), parts, 12);
    EXPECT_EQ(std::get<NodeCut>(CutOf(Matmul(), StrategyOf(Matmul(), cut), 12)), cut);
  }
  EXPECT_EQ(AllParts(Matmul(), 4).size(), 10U);
}

TEST(NodeCut, OneNumberCutsTheOuterFactorsFirst) {
  ShardingText text{.name = "split_heads",
                    .text = "bf(hd)->bhfd|heads=h",
                    .inputs = {Of({4, 5, 12})},
                    .outputs = {Of({4, 3, 5, 4})}};
  const Sharding heads = *ReadSharding(text);
  const auto shape_on = [&](const Strategy& strategy, uint32_t devices) {
    const NodeCut cut = std::get<NodeCut>(CutOf(heads, strategy, devices));
    return LocalShape(LayoutsOf(heads, cut).outputs[0], {4, 3, 5, 4}, 0);
  };
  EXPECT_EQ(shape_on({{{1}, {1}, {3}}}, 3), (Shape{4, 1, 5, 4}));
  EXPECT_EQ(shape_on({{{1}, {1}, {6}}}, 6), (Shape{4, 1, 5, 2}));
  EXPECT_EQ(shape_on({{{1}, {1}, {1, 2}}}, 2), (Shape{4, 3, 5, 2}));
  EXPECT_EQ(shape_on({{{1}, {1}, {2}}}, 2), (Shape{4, 2, 5, 4}));  // Uneven: 2 and 1 heads.
}

TEST(NodeCut, WhatBreaksARule) {
  EXPECT_EQ(ProblemOf(Matmul(), {{{2}, {4}}, {{4}, {1}}}, 8), "");
  EXPECT_EQ(ProblemOf(Matmul(), {{{2}, {4}}}, 8), "");
  EXPECT_EQ(ProblemOf(Matmul(), {{{1}, {1}}, {{1}, {1}}, {{1}}}, 8),
            "inputs: it names 3 inputs, and the node has 2");
  EXPECT_EQ(ProblemOf(Matmul(), {{{1}}}, 8),
            "dimensions: it cuts 1 dimensions of input 0, which has 2");
  EXPECT_EQ(ProblemOf(Matmul(), {{{0}, {1}}}, 8),
            "parts: dimension 0 of input 0 is cut into 0 parts");
  EXPECT_EQ(ProblemOf(Matmul(), {{{1}, {2}}, {{4}, {1}}}, 8),
            "agree: dimension 0 of input 1 is cut into 4 parts, and another input cuts the same "
            "dimension into 2");
  EXPECT_EQ(ProblemOf(Matmul(), {{{3}, {1}}}, 8),
            "devices: it needs 3 devices, which do not divide 8");
  const Sharding softmax = RuleOf("aN->aN", {Of({4, 6})});
  EXPECT_EQ(ProblemOf(softmax, {{{1}, {2}}}, 2),
            "whole: dimension 1 of input 0 is cut into 2 parts, and every device needs all of it");
  EXPECT_EQ(*NearestStrategy(softmax, {{{1}, {2}}}, 2), (Strategy{{{1}, {1}}}));
  EXPECT_EQ(*NearestStrategy(Matmul(), {{{2}, {4}}, {{2}, {1}}}, 8),
            (Strategy{{{2}, {4}}, {{4}, {1}}}));
}

TEST(CutOfLayouts, FollowsTheInputs) {
  const NodeCut cut = std::get<NodeCut>(CutOf(Matmul(), {{{2}, {3}}, {{3}, {2}}}, 12));
  const NodeLayouts layouts = LayoutsOf(Matmul(), cut);
  const auto held = CutOfLayouts(Matmul(), {{&layouts.inputs[0], &layouts.inputs[1]}, {}});
  EXPECT_EQ(std::get<HeldCut>(held).cut, cut);
  EXPECT_EQ(LayoutsOf(Matmul(), std::get<HeldCut>(held)).outputs[0], layouts.outputs[0]);
}

TEST(CutOfLayouts, PartialInputs) {
  const Sharding add = RuleOf("+ab,+ab->ab", {Of({4, 6}), Of({4, 6})});
  const Sharding mul = RuleOf("&ab,&ab->ab", {Of({4, 6}), Of({4, 6})});
  const Sharding relu = RuleOf("ab->ab", {Of({4, 6})});
  const Layout whole{.matrix = {2}, .dims = {{}, {}}};
  Layout terms = whole;
  terms.partial = {0};
  const auto rule_of = [](const std::variant<HeldCut, CutProblem>& held) {
    const auto* problem = std::get_if<CutProblem>(&held);
    return problem == nullptr ? "" : problem->rule;
  };
  EXPECT_EQ(rule_of(CutOfLayouts(add, {{&terms, &terms}, {}})), "");
  EXPECT_EQ(rule_of(CutOfLayouts(add, {{&terms, &whole}, {}})), "linear");
  EXPECT_EQ(rule_of(CutOfLayouts(mul, {{&terms, &whole}, {}})), "");
  EXPECT_EQ(rule_of(CutOfLayouts(mul, {{&terms, &terms}, {}})), "linear");
  EXPECT_EQ(rule_of(CutOfLayouts(relu, {{&terms}, {}})), "linear");
  EXPECT_EQ(std::get<HeldCut>(CutOfLayouts(mul, {{&terms, &whole}, {}})).partial, AxisList{0});
}

}  // namespace
}  // namespace dt::scheduler
