// Goal: a graph that is divided over the devices of a team computes what the whole graph computes.
// Method: both run in float64 in one thread, forward and backward; losses, gradients of parameters
// and of rows, joined from all devices, must be those of the whole.
#include "scheduler/passes/parallel/parallel_graph.h"

#include <cmath>

#include <gtest/gtest.h>

#include "ops/op_spec.h"
#include "scheduler/passes/autodiff/autodiff.h"
#include "scheduler/passes/frontend/frontend.h"
#include "test/support/lockstep.h"
#include "test/support/tiny_model.h"

namespace dt::scheduler {
namespace {

using test::HostTensor;
using test::SliceData;
using test::Tensors;
using test::TinyJob;
using test::TinyNode;

constexpr uint64_t kSeed = 26;

Result<Graph> ForwardGraph(const JobConfig& job) {
  const PlanRequest request{job, test::TinyColumns(), 1};
  DT_TRY(Graph graph, Expand({}, request));
  return InferShapes(std::move(graph), request);
}
Result<Graph> TrainedGraph(const JobConfig& job) {
  DT_TRY(Graph graph, ForwardGraph(job));
  return Differentiate(std::move(graph), {job, test::TinyColumns(), 1});
}

// The names of nodes with this operator.
std::vector<std::string> NodesOf(const Graph& graph, std::string_view op) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    if (node.op == op && node.forward == kNone) names.push_back(node.name);
  }
  return names;
}

class Equality {
 public:
  Equality(const JobConfig& job, uint32_t samples) : job_(job), samples_(samples) {
    const Result<Graph> graph = TrainedGraph(job);
    EXPECT_TRUE(graph.ok()) << ToText(graph.status());
    graph_ = test::InFloat64(*graph);
    slice_ = test::RandomSlice(graph_, samples, kSeed);
    slice_.inputs = test::InFloat64(std::move(slice_.inputs));
    slice_.first_sample = 100;
    parameters_ = test::InFloat64(test::FirstParameters(graph_, kSeed));
    run_.seed = kSeed;
    run_.step_samples = samples;
    TaskPool pool(1);
    Tensors parameters = parameters_;
    whole_ = test::Interpreter(graph_, pool).RunSlice(slice_, parameters, run_);
  }

  const Graph& graph() const { return graph_; }

  // Returns the operators of the communication nodes.
  std::map<std::string, size_t> Expect(uint32_t devices, Strategies strategies) {
    SCOPED_TRACE(fmt::format("{} devices", devices));
    std::map<std::string, size_t> communication;
    Result<Graph> graph = ForwardGraph(job_);
    TeamOptions team{
        .devices = devices, .strategies = std::move(strategies), .samples = int64_t{samples_}};
    if (graph.ok()) graph = ByParts(*graph, team);
    if (graph.ok()) graph = Differentiate(*graph, {job_, test::TinyColumns(), 1});
    EXPECT_TRUE(graph.ok()) << ToText(graph.status());
    if (!graph.ok()) return communication;
    const Result<ParallelGraph> parallel = Parallelized(test::InFloat64(*graph), team);
    EXPECT_TRUE(parallel.ok()) << ToText(parallel.status());
    if (!parallel.ok()) return communication;
    EXPECT_TRUE(CheckGraph(parallel->graph).ok()) << CheckGraph(parallel->graph);
    for (const Node& node : parallel->graph.nodes) {
      if (TraitsOf(node.op).kind == OpKind::kCommunication) ++communication[node.op];
    }
    test::Lockstep lockstep(*parallel);
    lockstep.RunSlice(slice_, parameters_, run_);
    for (size_t l = 0; l < graph_.losses.size(); ++l) {
      ExpectNear(lockstep, parallel->graph.losses[l].loss, graph_.losses[l].loss);
    }
    for (size_t p = 0; p < graph_.parameters.size(); ++p) {
      if (graph_.parameters[p].grad == kNone) continue;
      ExpectNear(lockstep, parallel->graph.parameters[p].grad, graph_.parameters[p].grad);
    }
    for (const Node& node : graph_.nodes) {
      for (const size_t i : FindOp(node.op)->running.statistics)
        ExpectStatistic(lockstep, *parallel, node.outputs[i]);
    }
    for (size_t t = 0; t < graph_.tables.size(); ++t) {
      if (graph_.tables[t].row_grad == kNone) continue;
      ExpectNear(lockstep, parallel->graph.tables[t].row_grad, graph_.tables[t].row_grad);
    }
    return communication;
  }

 private:
  // Statistics have their names in any graph.
  void ExpectStatistic(const test::Lockstep& lockstep, const ParallelGraph& parallel,
                       ValueIndex of) const {
    const std::vector<Value>& values = parallel.graph.values;
    const auto at = std::ranges::find(values, graph_.value(of).name, &Value::name);
    ASSERT_NE(at, values.end()) << graph_.value(of).name;
    const auto value = static_cast<ValueIndex>(at - values.begin());
    const HostTensor& whole = whole_.at(of);
    if (at->shape.back() == Const(whole.shape.back())) return ExpectNear(lockstep, value, of);
    // A count for each channel.
    const HostTensor counts = lockstep.Joined(value, {at->shape.back().times});
    for (size_t i = 0; i < counts.size(); ++i) EXPECT_EQ(counts.at(i), whole.at(0)) << at->name;
  }

  void ExpectNear(const test::Lockstep& lockstep, ValueIndex value, ValueIndex of) const {
    const HostTensor& whole = whole_.at(of);
    const HostTensor joined = lockstep.Joined(value, whole.shape);
    double largest = 1e-3;
    for (size_t i = 0; i < whole.size(); ++i) largest = std::max(largest, std::fabs(whole.at(i)));
    for (size_t i = 0; i < whole.size(); ++i) {
      ASSERT_NEAR(joined.at(i), whole.at(i), 1e-11 * largest) << graph_.value(of).name << " " << i;
    }
  }

  const JobConfig job_;
  const uint32_t samples_;
  Graph graph_;
  SliceData slice_;
  Tensors parameters_, whole_;
  RunInfo run_;
};

struct Model {
  const char* name;
  JobConfig (*job)();
};
// A composite over embedded fields beside a perceptron, as in the templates of configs/models.
JobConfig WithFields(const std::string& op, Attrs attrs) {
  using Ints = std::vector<int64_t>;
  return TinyJob({TinyNode("e", "lookup", {"C*"}, {{"table", "emb"}}),
                  TinyNode("fields", op, {"e"}, std::move(attrs)),
                  TinyNode("deep", "mlp", {"e", "I*"}, {{"units", Ints{6, 4}}, {"dropout", 0.2}}),
                  TinyNode("logit", "dense", {"fields", "deep"}, {{"units", int64_t{1}}})});
}

constexpr Model kModels[] = {{"DeepFm", [] { return TinyJob(test::TinyDeepFm()); }},
                             {"Din", [] { return TinyJob(test::TinyDin()); }},
                             {"EveryLoss", test::TinyLosses},
                             {"MoreLosses", test::TinyMoreLosses},
                             {"Dcn",
                              [] {
                                return WithFields("cross", {{"layers", int64_t{3}}});
                              }},
                             {"AutoInt",
                              [] {
                                return WithFields("attention",
                                                  {{"layers", int64_t{2}},
                                                   {"units", int64_t{8}},
                                                   {"heads", int64_t{2}},
                                                   {"residual", true},
                                                   {"activation", std::string("relu")}});
                              }},
                             {"Transformer", [] {
                                return WithFields("transformer", {{"layers", int64_t{2}},
                                                                  {"heads", int64_t{2}},
                                                                  {"hidden", int64_t{8}},
                                                                  {"norm", std::string("post")},
                                                                  {"dropout", 0.1}});
                              }}};

class ParallelModel : public ::testing::TestWithParam<Model> {};
INSTANTIATE_TEST_SUITE_P(Models, ParallelModel, ::testing::ValuesIn(kModels),
                         [](const auto& model) { return model.param.name; });

TEST_P(ParallelModel, SamplesAreDividedWithoutStrategies) {
  for (const uint32_t samples : {12U, 7U, 2U}) {
    Equality equality(GetParam().job(), samples);
    for (const uint32_t devices : {1U, 2U, 3U, 4U}) equality.Expect(devices, {});
    if (HasFailure()) return;
  }
}

// Every product is cut in turn along rows, the inner dimension and columns.
TEST_P(ParallelModel, ProductsAreDivided) {
  Equality equality(GetParam().job(), 7);
  const std::vector<std::string> products = NodesOf(equality.graph(), "matmul");
  for (const Strategy& strategy :
       {Strategy{{{1}, {2}}, {{2}, {1}}}, Strategy{{{1}, {1}}, {{1}, {2}}}, Strategy{{{2}, {2}}},
        Strategy{{{1}, {4}}}}) {
    Strategies strategies;
    for (const std::string& name : products) {
      const NodeIndex n =
          static_cast<NodeIndex>(std::ranges::find(equality.graph().nodes, name, &Node::name) -
                                 equality.graph().nodes.begin());
      const Node& node = equality.graph().nodes[n];
      if (equality.graph().value(node.inputs[0]).shape.size() == 2) strategies[name] = strategy;
    }
    equality.Expect(4, strategies);
    if (HasFailure()) return;
  }
}

// Samples of batch normalisations are divided without strategies, and channels too.
TEST(ParallelGraph, SamplesOfABatchNormalisation) {
  const JobConfig job = TinyJob(
      {TinyNode("a", "mlp", {"I*"},
                {{"units", std::vector<int64_t>{6, 5}}, {"batch_norm", true}, {"bias", false}}),
       TinyNode("c", "dense", {"a"}, {{"units", int64_t{1}}})});
  for (const uint32_t samples : {7U, 2U}) {
    Equality equality(job, samples);
    const auto without = equality.Expect(3, {});
    EXPECT_FALSE(without.contains("all_gather")) << "samples stay where they are";
    EXPECT_GE(without.at("all_reduce"), 6U);
    const std::string norm = NodesOf(equality.graph(), "batch_norm")[0];
    equality.Expect(4, {{norm, Strategy{{{2}, {2}}}}});
    equality.Expect(2, {{norm, Strategy{{{1}, {2}}}}});
    if (HasFailure()) return;
  }
}

// Rows of softmax, layer norm, dropout and L2 norm are divided, over devices that also divide the
// samples.
TEST(ParallelGraph, NodesByParts) {
  const JobConfig job =
      TinyJob({TinyNode("a", "dense", {"I1"}, {{"units", int64_t{10}}}),
               TinyNode("norm", "layer_norm", {"a"}),
               TinyNode("drop", "dropout", {"norm"}, {{"rate", 0.3}}),
               TinyNode("soft", "softmax", {"drop"}), TinyNode("unit", "l2_normalize", {"soft"}),
               TinyNode("c", "dense", {"unit"}, {{"units", int64_t{1}}})});
  for (const uint32_t columns : {2U, 3U, 4U}) {
    Equality equality(job, 7);
    for (const uint32_t rows : {1U, 2U}) {
      const Strategy cut = {{{rows}, {columns}}};
      const std::string norm = NodesOf(equality.graph(), "layer_norm")[0];
      const auto communication = equality.Expect(
          rows * columns, {{norm, cut}, {"drop", cut}, {"soft", cut}, {"unit", cut}});
      if (HasFailure()) return;
      // Two of layer norm, two of softmax, one of L2 norm, and those of their gradients.
      EXPECT_GE(communication.at("all_reduce"), 5U);
    }
  }
}

// The features of cross layers, each of which has a product with all of them.
TEST(ParallelGraph, FeaturesOfCrossLayers) {
  const JobConfig job = TinyJob({TinyNode("a", "dense", {"I1"}, {{"units", int64_t{10}}}),
                                 TinyNode("x", "cross", {"a"}, {{"layers", int64_t{3}}}),
                                 TinyNode("c", "dense", {"x"}, {{"units", int64_t{1}}})});
  Equality equality(job, 7);
  const std::vector<std::string> layers = NodesOf(equality.graph(), "cross_layer");
  ASSERT_EQ(layers.size(), 3U);
  for (const uint32_t columns : {2U, 3U, 4U}) {
    for (const uint32_t rows : {1U, 2U}) {
      Strategies strategies;
      for (const std::string& layer : layers) strategies[layer] = Strategy{{{rows}, {columns}}};
      const auto communication = equality.Expect(rows * columns, strategies);
      if (HasFailure()) return;
      EXPECT_GE(communication.at("all_reduce"), 6U);
    }
  }
}

// The classes of a cross entropy are divided, as a large vocabulary is, over devices that also
// divide the samples.
TEST(ParallelGraph, ClassesOfACrossEntropy) {
  JobConfig job = TinyJob({TinyNode("a", "dense", {"I1"}, {{"units", int64_t{10}}}),
                           TinyNode("classes", "dense", {"a"}, {{"units", int64_t{7}}})});
  job.model.losses = {
      {.type = "softmax_cross_entropy", .input = "classes", .label = "label", .name = "label"}};
  for (const uint32_t samples : {7U, 2U}) {
    Equality equality(job, samples);
    for (const uint32_t columns : {2U, 3U, 4U, 8U}) {
      for (const uint32_t rows : {1U, 2U}) {
        const auto communication = equality.Expect(
            rows * columns, {{"classes.matmul", Strategy{{{rows}, {1}}, {{1}, {columns}}}},
                             {"classes.bias_add", Strategy{{{rows}, {columns}}, {{columns}}}},
                             {"loss.label", Strategy{{{rows}, {columns}}}}});
        if (HasFailure()) return;
        // The maximum, the sum, and the logit of the label; the gradient of the logits needs none.
        EXPECT_GE(communication.at("all_reduce"), 3U);
      }
    }
  }
}

// A node that asks for a collective gets it, and its gradient the one back.
TEST(ParallelGraph, CollectivesThatAJobAsksFor) {
  const JobConfig job =
      TinyJob({TinyNode("a", "dense", {"I1"}, {{"units", int64_t{10}}}),
               TinyNode("moved", "redistribute", {"a"}), TinyNode("b", "relu", {"moved"}),
               TinyNode("c", "dense", {"b"}, {{"units", int64_t{1}}})});
  Equality equality(job, 7);
  const Strategy rows = {{{4}, {1}}}, columns = {{{1}, {4}}}, whole = {{{1}, {1}}};
  struct Asked {
    const char* collective;
    Strategy product, moved;
    const char* back;
  };
  const Strategy inner = {{{1}, {4}}, {{4}, {1}}};
  for (const Asked& asked : {Asked{"all_gather", {{{4}, {1}}, {{1}, {1}}}, whole, "take_part"},
                             Asked{"all_to_all", {{{4}, {1}}, {{1}, {1}}}, columns, "all_to_all"},
                             Asked{"reduce_scatter", inner, rows, "all_gather"}}) {
    // Samples are divided before and after it, unless it is a product along its inner dimension.
    Strategies strategies = {
        {"moved", asked.moved}, {"b", asked.moved}, {"a.matmul", asked.product}};
    const auto communication = equality.Expect(4, strategies);
    EXPECT_GE(communication.count(asked.collective), 1U) << asked.collective;
    EXPECT_GE(communication.count(asked.back), 1U) << asked.collective << " has " << asked.back;
    if (HasFailure()) return;
  }
}

// Every device has all items, and only the users of its samples.
TEST(ParallelGraph, UsersOfAnInBatchSoftmax) {
  JobConfig job = test::TinyLosses();
  job.model.losses = {job.model.losses[3]};
  for (const uint32_t samples : {7U, 2U}) {
    Equality equality(job, samples);
    const auto communication = equality.Expect(3, {});
    EXPECT_EQ(communication.at("all_gather"), 1U) << "of the items";
    EXPECT_EQ(communication.at("reduce_scatter"), 1U) << "of their gradient";
    equality.Expect(4, {{"loss." + job.model.losses[0].name, Strategy{{{2}, {1}}}}});
    if (HasFailure()) return;
  }
}

// Each device finds the largest of its columns, of which there may be fewer than are wanted.
TEST(ParallelGraph, ColumnsOfTheLargest) {
  const JobConfig job = TinyJob({TinyNode("a", "dense", {"I1"}, {{"units", int64_t{7}}}),
                                 TinyNode("best", "top_k", {"a"}, {{"k", int64_t{3}}}),
                                 TinyNode("c", "dense", {"best"}, {{"units", int64_t{1}}})});
  Equality equality(job, 5);
  for (const uint32_t columns : {2U, 3U, 4U, 6U}) {
    for (const uint32_t rows : {1U, 2U}) {
      const auto communication =
          equality.Expect(rows * columns, {{"best", Strategy{{{rows}, {columns}}}}});
      if (HasFailure()) return;
      EXPECT_GE(communication.at("all_gather"), 2U) << "the largest of each device, and where";
    }
  }
}

// A dense table that all fields share, cut by columns, rows, samples and rows, and fields.
TEST(ParallelGraph, RowsOfAnEmbedding) {
  const JobConfig job = TinyJob(
      {TinyNode("e", "embedding", {"C1", "C2"}, {{"rows", int64_t{11}}, {"dim", int64_t{6}}}),
       TinyNode("c", "dense", {"e"}, {{"units", int64_t{1}}})});
  for (const uint32_t samples : {7U, 2U}) {
    Equality equality(job, samples);
    equality.Expect(2, {{"e.rows", Strategy{{{1}, {2}}}}});
    equality.Expect(4, {{"e.rows", Strategy{{{1}, {1}}, {{2}, {2}}}}});
    // Rows: each device has terms of a sum.
    for (const uint32_t rows : {2U, 3U, 4U}) {
      const auto communication = equality.Expect(rows, {{"e.rows", Strategy{{{rows}, {1}}}}});
      EXPECT_TRUE(communication.contains("all_reduce") || communication.contains("reduce_scatter"));
    }
    equality.Expect(4, {{"e.rows", Strategy{{{2}, {1}}, {{2}, {1}}}}});
    equality.Expect(8, {{"e.rows", Strategy{{{2}, {2}}, {{1}, {2}}}}});
    if (HasFailure()) return;
  }
}

// Fields of different numbers of rows, which follow their fields: nothing is added up between
// devices but what samples give.
TEST(ParallelGraph, FieldsOfAnEmbedding) {
  const JobConfig job =
      TinyJob({TinyNode("e", "embedding", {"C1", "C2", "C3"},
                        {{"manual_split", std::vector<int64_t>{5, 1, 9}}, {"dim", int64_t{4}}}),
               TinyNode("c", "dense", {"e"}, {{"units", int64_t{1}}})});
  for (const uint32_t samples : {7U, 2U}) {
    Equality equality(job, samples);
    for (const uint32_t fields : {2U, 3U}) {
      equality.Expect(fields, {{"e.rows", Strategy{{{fields}, {1}}}}});
      equality.Expect(2 * fields, {{"e.rows", Strategy{{{fields}, {1}}, {{2}, {fields}}}}});
      equality.Expect(2 * fields, {{"e.rows", Strategy{{{fields}, {2}}}}});
    }
    if (HasFailure()) return;
  }
}

JobConfig Mlp() {
  return TinyJob({TinyNode("a", "dense", {"I1"}, {{"units", int64_t{16}}}),
                  TinyNode("b", "dense", {"a"}, {{"units", int64_t{12}}}),
                  TinyNode("c", "dense", {"b"}, {{"units", int64_t{1}}})});
}

// Both layers of a pair are divided along their inner dimension and columns: one all-reduce each.
TEST(ParallelGraph, LayersThatAreDividedBothWays) {
  Equality equality(Mlp(), 16);
  const auto communication = equality.Expect(8, {{"a.matmul", Strategy{{{2}, {1}}, {{1}, {4}}}},
                                                 {"a.bias_add", Strategy{{{2}, {4}}}},
                                                 {"b.matmul", Strategy{{{2}, {4}}, {{4}, {1}}}},
                                                 {"b.bias_add", Strategy{{{8}, {1}}}},
                                                 {"c.matmul", Strategy{{{1}, {4}}}}});
  // The terms of b, and those of the gradient of a, are added and divided at once.
  EXPECT_EQ(communication.at("reduce_scatter"), 2U);
}

TEST(ParallelGraph, AWrongStrategyNamesNodeRuleShapesAndTheNearest) {
  const Result<Graph> graph = TrainedGraph(Mlp());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::vector<std::string> products = NodesOf(*graph, "matmul");
  ASSERT_EQ(products.size(), 3U);
  const TeamOptions team{.devices = 4,
                         .strategies = {{products[0], Strategy{{{3}, {1}}}},
                                        {products[1], Strategy{{{1}, {2}}, {{4}, {1}}}}}};
  const Result<ParallelGraph> parallel = Parallelized(*graph, team);
  const std::string text = ToText(parallel.status());
  EXPECT_NE(text.find(products[0]), text.npos) << text;
  EXPECT_NE(text.find("(devices): it needs 3 devices, which do not divide 4"), text.npos) << text;
  EXPECT_NE(text.find("(agree)"), text.npos) << text;
  EXPECT_NE(text.find("the nearest that is valid is"), text.npos) << text;
}

}  // namespace
}  // namespace dt::scheduler
