#include "common/graph/graph.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/graph/initial_values.h"

namespace dt {
namespace {

using ::testing::HasSubstr;

// y = x · w, and an invented "square" with two outputs.
Graph Tiny() {
  Graph graph;
  const ValueIndex x =
      graph.AddValue({"x", DType::kF32, {Dim{kBatch, 1}, Const(3)}, ValueKind::kInput, kNone});
  const ValueIndex w =
      graph.AddValue({"y.weight", DType::kF32, {Const(3), Const(1)}, ValueKind::kParameter, kNone});
  graph.inputs.push_back({.value = x, .columns = {0, 1, 2}});
  graph.parameters.push_back({w, {InitKind::kXavierNormal, 0}, 3, 1, true, kNone});
  Node y;
  y.name = "y";
  y.op = "matmul";
  y.inputs = {x, w};
  y.attrs = {{"transpose_a", false}, {"sizes", std::vector<int64_t>{1, 2}}, {"rate", 0.5}};
  y.mark = {"model.yaml", 4};
  const ValueIndex out = graph.nodes[graph.AddNode(y, 1)].outputs[0];
  graph.values[out].shape = {Dim{kBatch, 1}, Const(1)};
  Node pair;
  pair.name = "pair";
  pair.op = "split \"it\"";
  pair.inputs = {out};
  pair.device = Device::kCpu;
  pair.forward = 0;
  graph.AddNode(pair, 2);
  graph.values.back().shape = {Dim{graph.SymbolNamed("U.item"), 2}};
  graph.values.back().dtype = DType::kU32;
  return graph;
}

TEST(GraphTest, OutputsAreNamedAfterTheirNode) {
  const Graph graph = Tiny();
  EXPECT_EQ(graph.value(graph.nodes[0].outputs[0]).name, "y");
  EXPECT_EQ(graph.value(graph.nodes[1].outputs[1]).name, "pair:1");
  EXPECT_TRUE(CheckGraph(graph).ok());
}

TEST(GraphTest, SymbolsAreAddedOnce) {
  Graph graph;
  EXPECT_EQ(graph.SymbolNamed("B"), kBatch);
  const SymbolIndex added = graph.SymbolNamed("N.tags");
  EXPECT_EQ(graph.SymbolNamed("N.tags"), added);
  EXPECT_EQ(ShapeText(graph, {Dim{kBatch, 26}, Const(4), Dim{added, 1}}), "[26*B, 4, N.tags]");
}

TEST(GraphTest, TextDump) {
  EXPECT_EQ(DumpText(Tiny()),
            "input x [B, 3]\n"
            "parameter y.weight [3, 1]\n"
            "y [B, 1] = matmul(x, y.weight) {rate: 0.5, sizes: [1, 2], transpose_a: false}\n"
            "pair:0 [], pair:1 [2*U.item] u32 = split \"it\"(y) on cpu of y\n");
}

TEST(GraphTest, DotAndJsonQuoteNames) {
  EXPECT_THAT(DumpDot(Tiny()), HasSubstr("n1 [label=\"pair : split \\\"it\\\"\", style=dashed];"));
  const std::string json = DumpJson(Tiny());
  EXPECT_THAT(json, HasSubstr("\"op\": \"split \\\"it\\\"\""));
  EXPECT_THAT(json, HasSubstr("\"mark\": \"model.yaml:4\""));
}

struct Damage {
  const char* name;
  void (*apply)(Graph& graph);
};

constexpr Damage kDamages[] = {
    {"reads later value", [](Graph& g) { std::swap(g.nodes[0], g.nodes[1]); }},
    {"reads no value", [](Graph& g) { g.nodes[0].inputs[0] = 99; }},
    {"produced twice", [](Graph& g) { g.nodes[1].outputs[0] = g.nodes[0].outputs[0]; }},
    {"produces an input", [](Graph& g) { g.nodes[0].outputs[0] = 0; }},
    {"produced by none", [](Graph& g) { g.nodes.pop_back(); }},
    {"forward", [](Graph& g) { g.nodes[1].forward = 7; }},
    {"no operator", [](Graph& g) { g.nodes[0].op.clear(); }},
    {"symbol", [](Graph& g) { g.values[0].shape[0].symbol = 9; }},
    {"overflow", [](Graph& g) { g.values[0].shape.assign(4, Const(1 << 20)); }},
    {"symbols", [](Graph& g) { g.symbols.clear(); }},
    {"unbound input", [](Graph& g) { g.inputs.clear(); }},
    {"bound twice", [](Graph& g) { g.inputs.push_back(g.inputs[0]); }},
    {"input without column", [](Graph& g) { g.inputs[0].columns.clear(); }},
    {"parameter", [](Graph& g) { g.parameters[0].value = 0; }},
    {"gradient", [](Graph& g) { g.parameters[0].grad = 0; }},
    {"table",
     [](Graph& g) { g.tables.push_back({.name = "t", .id = TableId(1), .dim = 4, .rows = 1}); }},
    {"lookup",
     [](Graph& g) {
       g.lookups.push_back({"l", 0, {1}, 1, false});
     }},
};

TEST(GraphTest, CheckFindsEveryDamage) {
  for (const Damage& damage : kDamages) {
    Graph graph = Tiny();
    damage.apply(graph);
    EXPECT_FALSE(CheckGraph(graph).ok()) << damage.name;
  }
}

TEST(GraphTest, AttributesHaveDefaults) {
  const Attrs attrs = {
      {"whole", int64_t{3}}, {"real", 0.5}, {"on", true}, {"word", std::string("x")}};
  EXPECT_EQ(IntAttr(attrs, "whole", 1), 3);
  EXPECT_EQ(IntAttr(attrs, "absent", 1), 1);
  EXPECT_EQ(FloatAttr(attrs, "real", 1), 0.5);
  EXPECT_EQ(FloatAttr(attrs, "whole", 1), 3.0);  // A whole number may be read as a real one.
  EXPECT_TRUE(BoolAttr(attrs, "on", false));
  EXPECT_EQ(TextAttr(attrs, "word", "y"), "x");
  EXPECT_TRUE(IntsAttr(attrs, "absent").empty());
}

Value Matrix(std::string name) {
  return {std::move(name), DType::kF32, {Const(200), Const(100)}, ValueKind::kParameter, kNone};
}

double Deviation(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const float v : values) {
    sum += v;
    squares += double{v} * v;
  }
  const double n = static_cast<double>(values.size());
  return std::sqrt(squares / n - sum / n * (sum / n));
}

TEST(InitialValuesTest, AreAFunctionOfSeedAndName) {
  ParameterSpec spec;
  spec.init = {InitKind::kNormal, 0.5f};
  const auto values = InitialValues(1, Matrix("a"), spec);
  EXPECT_EQ(values, InitialValues(1, Matrix("a"), spec));
  EXPECT_NE(values, InitialValues(2, Matrix("a"), spec));
  EXPECT_NE(values, InitialValues(1, Matrix("b"), spec));
}

TEST(InitialValuesTest, HaveTheirSpread) {
  struct Case {
    InitSpec init;
    double deviation;
  };
  const double root3 = std::sqrt(3.0);
  for (const Case& c :
       {Case{{InitKind::kZeros, 9}, 0}, Case{{InitKind::kConstant, 2}, 0},
        Case{{InitKind::kNormal, 0.5f}, 0.5}, Case{{InitKind::kUniform, 0.5f}, 0.5 / root3},
        Case{{InitKind::kXavierNormal, 0}, std::sqrt(2.0 / 300)},
        Case{{InitKind::kXavierUniform, 0}, std::sqrt(2.0 / 300)}}) {
    ParameterSpec spec;
    spec.init = c.init;
    spec.fan_in = 200;
    spec.fan_out = 100;
    const auto values = InitialValues(1, Matrix("a"), spec);
    ASSERT_EQ(values.size(), 20000u);
    EXPECT_NEAR(Deviation(values), c.deviation, 0.02 * c.deviation + 1e-7);
    const bool constant = c.init.kind == InitKind::kConstant;
    EXPECT_EQ(values[7] == 2.0f, constant);
  }
}

}  // namespace
}  // namespace dt
