#include "scheduler/parallel/graph_layouts.h"

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

// A graph of rules over matrices, for tests.
struct Builder {
  LayoutProblem problem;

  explicit Builder(uint32_t devices) { problem.devices = devices; }
  ValueIndex Add(ValueOrigin origin, Shape shape, std::string name) {
    LayoutValue value;
    value.name = std::move(name);
    value.shape = std::move(shape);
    value.origin = origin;
    problem.values.push_back(std::move(value));
    return static_cast<ValueIndex>(problem.values.size() - 1);
  }
  ValueIndex Node(std::string_view loops, std::vector<ValueIndex> inputs, Strategy strategy) {
    ShardingText rule{.name = "test", .text = loops};
    for (const ValueIndex v : inputs) {
      rule.inputs.emplace_back();
      for (const int64_t n : problem.values[v].shape) rule.inputs.back().push_back(Const(n));
    }
    LayoutNode node;
    node.name = "node" + std::to_string(problem.nodes.size());
    node.rule = *ReadSharding(rule);
    node.inputs = std::move(inputs);
    if (!strategy.empty()) node.strategy = std::move(strategy);
    Shape shape;
    for (const Dim& dim : rule.outputs[0]) shape.push_back(dim.times);
    node.outputs = {Add(ValueOrigin::kNode, shape, node.name)};
    problem.nodes.push_back(std::move(node));
    return problem.nodes.back().outputs[0];
  }
};

std::string ChangesOf(const GraphLayouts& layouts) {
  std::string text;
  for (const ValueChange& change : layouts.changes) {
    for (const RedistributionStep& step : change.how.steps) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", NameOf(step.kind));
    }
  }
  return text;
}

// Z = (X · W) · V
std::string Changes(const Strategy& first, const Strategy& second, int64_t columns = 8) {
  Builder graph(4);
  const ValueIndex x = graph.Add(ValueOrigin::kInput, {8, 16}, "X");
  const ValueIndex w = graph.Add(ValueOrigin::kParameter, {16, 32}, "W");
  const ValueIndex v = graph.Add(ValueOrigin::kParameter, {32, columns}, "V");
  const ValueIndex y = graph.Node("&ak,&kb->ab", {x, w}, first);
  graph.Node("&ak,&kb->ab", {y, v}, second);
  std::vector<NodeProblem> problems;
  const GraphLayouts layouts = FindLayouts(graph.problem, problems);
  EXPECT_TRUE(problems.empty());
  return ChangesOf(layouts);
}

TEST(GraphLayouts, TwoProducts) {
  EXPECT_EQ(Changes({{{4}, {1}}}, {{{4}, {1}}}), "");
  EXPECT_EQ(Changes({{{4}, {1}}}, {{{1}, {1}}, {{1}, {4}}}), "AllGather");
  EXPECT_EQ(Changes({{{1}, {1}}, {{1}, {4}}}, {{{4}, {1}}}), "AllToAll");
  EXPECT_EQ(Changes({{{2}, {2}}}, {{{2}, {1}}}), "AllReduce");
  EXPECT_EQ(Changes({{{1}, {1}}, {{1}, {4}}}, {{{1}, {4}}, {{4}, {1}}}), "AllReduce");
}

TEST(GraphLayouts, APartialResultIsReducedWhereItIsSmallest) {
  Builder graph(4);
  const ValueIndex x = graph.Add(ValueOrigin::kInput, {8, 16}, "X");
  const ValueIndex w = graph.Add(ValueOrigin::kParameter, {16, 32}, "W");
  const ValueIndex y = graph.Node("&ak,&kb->ab", {x, w}, {{{1}, {4}}});
  const ValueIndex sum = graph.Node("&ab->a", {y}, {{{1}, {1}}});
  const ValueIndex relu = graph.Node("a->a", {sum}, {{{1}}});
  std::vector<NodeProblem> problems;
  const GraphLayouts layouts = FindLayouts(graph.problem, problems);
  ASSERT_EQ(layouts.changes.size(), 1U);
  EXPECT_EQ(layouts.changes[0].value, sum);
  EXPECT_EQ(layouts.values[sum]->partial.size(), 1U);
  EXPECT_TRUE(layouts.values[relu]->partial.empty());
}

TEST(GraphLayouts, ATermMustBePartialAsTheOthersAre) {
  Builder graph(4);
  const ValueIndex x = graph.Add(ValueOrigin::kInput, {8, 16}, "X");
  const ValueIndex w = graph.Add(ValueOrigin::kParameter, {16, 16}, "W");
  const ValueIndex y = graph.Node("&ak,&kb->ab", {x, w}, {{{1}, {4}}});
  const ValueIndex z = graph.Node("ab->ab", {x}, {{{1}, {1}}});
  graph.Node("+ab,+ab->ab", {y, z}, {{{1}, {1}}});
  std::vector<NodeProblem> problems;
  const GraphLayouts layouts = FindLayouts(graph.problem, problems);
  ASSERT_EQ(layouts.changes.size(), 1U);
  EXPECT_EQ(layouts.changes[0].value, y);
}

TEST(GraphLayouts, ReadersShareAChange) {
  Builder graph(4);
  const ValueIndex x = graph.Add(ValueOrigin::kInput, {8, 16}, "X");
  const ValueIndex y = graph.Node("ab->ab", {x}, {{{4}, {1}}});
  graph.Node("ab->ab", {y}, {{{1}, {1}}});
  graph.Node("ab->ab", {y}, {{{1}, {1}}});
  graph.Node("ab->ab", {y}, {{{1}, {4}}});
  std::vector<NodeProblem> problems;
  const GraphLayouts layouts = FindLayouts(graph.problem, problems);
  // The third reader takes its part of what the first two have joined.
  EXPECT_EQ(ChangesOf(layouts), "AllGather, Split");
  EXPECT_EQ(layouts.inputs[1][0].change, layouts.inputs[2][0].change);
}

TEST(GraphLayouts, UsersOfAParameterMustAgree) {
  Builder graph(4);
  const ValueIndex x = graph.Add(ValueOrigin::kInput, {8, 16}, "X");
  const ValueIndex w = graph.Add(ValueOrigin::kParameter, {16, 16}, "W");
  const ValueIndex y = graph.Node("&ak,&kb->ab", {x, w}, {{{1}, {1}}, {{1}, {4}}});
  graph.Node("&ak,&kb->ab", {y, w}, {{{1}, {4}}, {{4}, {1}}});
  std::vector<NodeProblem> problems;
  FindLayouts(graph.problem, problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].node, 1U);
  EXPECT_EQ(problems[0].problem.what, "\"W\" is cut otherwise by \"node0\"");
}

TEST(GraphLayouts, EveryProblemIsReported) {
  Builder graph(4);
  const ValueIndex x = graph.Add(ValueOrigin::kInput, {8, 16}, "X");
  const ValueIndex y = graph.Node("aN->aN", {x}, {{{1}, {4}}});
  graph.Node("ab->ab", {y}, {{{3}, {1}}});
  std::vector<NodeProblem> problems;
  FindLayouts(graph.problem, problems);
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_EQ(problems[0].nearest, (Strategy{{{1}, {1}}}));
  EXPECT_EQ(problems[1].problem.rule, "devices");
}

TEST(GraphLayouts, AGradientIsCutAsItsForwardNode) {
  Builder graph(4);
  const ValueIndex x = graph.Add(ValueOrigin::kInput, {8, 16}, "X");
  const ValueIndex w = graph.Add(ValueOrigin::kParameter, {16, 32}, "W");
  const ValueIndex h = graph.Node("ab->ab", {x}, {{{2}, {2}}});
  const ValueIndex y = graph.Node("&ak,&kb->ab", {h, w}, {{{2}, {2}}});
  const ValueIndex dy = graph.Node("ab->ab", {y}, {{{4}, {1}}});
  graph.Node("&ak,&ab->kb", {h, dy}, {});
  graph.problem.nodes.back().forward = 1;
  std::vector<NodeProblem> problems;
  const GraphLayouts layouts = FindLayouts(graph.problem, problems);
  ASSERT_TRUE(problems.empty()) << problems[0].problem.what;
  // dW is cut as W, and a partial sum over the axis that cuts the rows.
  const NodeLayouts& gradient = layouts.layouts[3];
  EXPECT_EQ(layouts.cuts[3].matrix, layouts.cuts[1].matrix);
  EXPECT_EQ(gradient.outputs[0].dims, layouts.values[w]->dims);
  EXPECT_EQ(gradient.outputs[0].partial, AxisList{0});
}

}  // namespace
}  // namespace dt::scheduler
