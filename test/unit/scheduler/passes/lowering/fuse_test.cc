// Goal: the pass `fuse` joins the nodes that it should, leaves alone values with other readers and
// nodes on different devices, and the job chooses the arithmetic of products. passes_test.cc checks
// that results do not change.
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/plan/plan.h"
#include "test/support/tiny_model.h"

namespace dt::scheduler {
namespace {

using test::TinyColumns;
using test::TinyJob;
using test::TinyNode;

Plan PlanOf(const JobConfig& job) {
  Result<Plan> plan = MakePlan({job, TinyColumns(), 1, test::TinyAccelerator()});
  DT_CHECK_MSG(plan.ok(), "{}", ToText(plan.status()));
  return *std::move(plan);
}

// The number of nodes of each operator.
std::map<std::string, int> Counts(const Plan& plan) {
  std::map<std::string, int> counts;
  for (const Node& node : plan.graph.nodes) ++counts[node.op];
  return counts;
}

std::vector<NodeConfig> Mlp() {
  return {
      TinyNode("m", "mlp", {"I*"}, {{"units", std::vector<int64_t>{6, 5, 4, 1}}}, 1),
  };
}

TEST(Fuse, APerceptronIsOneNodeALayerEachWay) {
  const Plan plan = PlanOf(TinyJob(Mlp()));
  std::map<std::string, int> counts = Counts(plan);
  EXPECT_EQ(counts["dense_layer"], 4);
  EXPECT_EQ(counts["dense_layer_back"], 3);
  EXPECT_EQ(counts["matmul"], 4);  // These compute gradients of weights.
  // The gradient of the last bias, whose layer has no activation.
  EXPECT_EQ(counts["reduce_batch"], 1);
  for (const char* op : {"bias_add", "relu", "relu_grad", "relu_bias_grad"}) {
    EXPECT_EQ(counts[op], 0) << op;
  }
  EXPECT_EQ(plan.graph.nodes[0].name, "m.0.relu");
  for (const Node& node : plan.graph.nodes) {
    if (node.op != "dense_layer_back") continue;
    EXPECT_EQ(plan.graph.nodes[node.forward].op, "dense_layer");
  }
}

TEST(Fuse, WhatAnotherNodeReadsStays) {
  // The sum reads the outputs of dropout and of the layer, so two gradients are added after relu.
  const Plan twice = PlanOf(
      TinyJob({TinyNode("d", "dense", {"I*"}, {{"units", int64_t{3}}, {"activation", "relu"}}, 1),
               TinyNode("e", "dense", {"d"}, {{"units", int64_t{3}}}, 2),
               TinyNode("s", "add", {"d", "e"}, {}, 3),
               TinyNode("logit", "dense", {"s"}, {{"units", int64_t{1}}}, 4)}));
  std::map<std::string, int> counts = Counts(twice);
  EXPECT_EQ(counts["dense_layer"], 3);
  EXPECT_EQ(counts["relu_bias_grad"], 1);
  EXPECT_EQ(counts["dense_layer_back"], 0);

  // relu is a node of its own, and its input has a second reader.
  const Plan read =
      PlanOf(TinyJob({TinyNode("d", "dense", {"I*"}, {{"units", int64_t{3}}}, 1),
                      TinyNode("r", "relu", {"d"}, {}, 2), TinyNode("s", "add", {"d", "r"}, {}, 3),
                      TinyNode("logit", "dense", {"s"}, {{"units", int64_t{1}}}, 4)}));
  counts = Counts(read);
  EXPECT_EQ(counts["dense_layer"], 2);
  EXPECT_EQ(counts["relu"], 1);
  EXPECT_EQ(counts["relu_grad"], 1);

  // A product without bias is not changed.
  const Plan bare = PlanOf(
      TinyJob({TinyNode("d", "dense", {"I*"},
                        {{"units", int64_t{3}}, {"activation", "relu"}, {"bias", false}}, 1),
               TinyNode("logit", "dense", {"d"}, {{"units", int64_t{1}}, {"bias", false}}, 2)}));
  counts = Counts(bare);
  EXPECT_EQ(counts["dense_layer"] + counts["dense_layer_back"] + counts["relu_bias_grad"], 0);
  EXPECT_EQ(counts["relu"], 1);
}

TEST(Fuse, DropoutAfterReluNeedsNoMaskOnTheWayBack) {
  const Attrs attrs = {{"units", std::vector<int64_t>{6, 5, 1}}, {"dropout", 0.25}};
  const Plan plan = PlanOf(TinyJob({TinyNode("m", "mlp", {"I*"}, attrs, 1)}));
  std::map<std::string, int> counts = Counts(plan);
  EXPECT_EQ(counts["dense_layer"], 3);
  EXPECT_EQ(counts["dropout"], 2);
  EXPECT_EQ(counts["dropout_grad"], 0);
  EXPECT_EQ(counts["dense_layer_back"], 2);
  for (const Node& node : plan.graph.nodes) {
    if (node.op != "dense_layer_back") continue;
    EXPECT_EQ(FloatAttr(node.attrs, "dropout", 0), 0.25);
    const NodeIndex y = plan.graph.value(node.inputs[2]).producer;
    EXPECT_EQ(plan.graph.nodes[y].op, "dropout");
  }

  // The ReLU has a second reader, so its gradient is a sum.
  const Plan read = PlanOf(TinyJob(
      {TinyNode("d", "dense", {"I*"}, {{"units", int64_t{3}}, {"activation", "relu"}}, 1),
       TinyNode("drop", "dropout", {"d"}, {}, 2), TinyNode("s", "add", {"d", "drop"}, {}, 3),
       TinyNode("logit", "dense", {"s"}, {{"units", int64_t{1}}}, 4)}));
  EXPECT_EQ(Counts(read)["dropout_grad"], 1);

  // The activation is another one.
  Attrs smooth = attrs;
  smooth["activation"] = "gelu";
  EXPECT_EQ(Counts(PlanOf(TinyJob({TinyNode("m", "mlp", {"I*"}, smooth, 1)})))["dropout_grad"], 2);
}

TEST(Fuse, ANormalisationIsOneNodeWithItsActivation) {
  Attrs attrs = {{"units", std::vector<int64_t>{6, 5, 1}}, {"batch_norm", true}};
  for (const double rate : {0.0, 0.25}) {
    attrs["dropout"] = rate;
    const Plan plan = PlanOf(TinyJob({TinyNode("m", "mlp", {"I*"}, attrs, 1)}));
    std::map<std::string, int> counts = Counts(plan);
    EXPECT_EQ(counts["norm_layer"], 2);
    EXPECT_EQ(counts["norm_layer_back"], 2);
    for (const char* op :
         {"batch_norm", "batch_norm_grad", "relu", "relu_grad", "dropout", "dropout_grad"}) {
      EXPECT_EQ(counts[op], 0) << op;
    }
    EXPECT_EQ(counts["reduce_batch"], 1);  // The last layer's, which has no normalisation.
    EXPECT_EQ(counts["batch_norm_running"], 2);
    for (const Node& node : plan.graph.nodes) {
      if (node.op.starts_with("norm_layer")) {
        EXPECT_EQ(FloatAttr(node.attrs, "dropout", 0), rate);
      }
    }
  }
}

TEST(Fuse, DotProductsAreWrittenBehindWhatTheyAreJoinedWith) {
  const auto plan_of = [](std::vector<std::string> joined) {
    return PlanOf(
        TinyJob({TinyNode("numbers", "mlp", {"I*"}, {{"units", std::vector<int64_t>{4}}}, 1),
                 TinyNode("e", "lookup", {"C*"}, {{"table", "emb"}}, 2),
                 TinyNode("pairs", "dot", {"numbers", "e"}, {}, 3),
                 TinyNode("logit", "dense", std::move(joined), {{"units", int64_t{1}}}, 4)}));
  };
  std::map<std::string, int> counts = Counts(plan_of({"numbers", "pairs"}));
  EXPECT_EQ(counts["concat_dot"], 1);
  EXPECT_EQ(counts["concat_dot_grad"], 1);
  EXPECT_EQ(counts["dot"] + counts["dot_grad"], 0);
  EXPECT_EQ(counts["slice"], 1);  // The gradient of `numbers`.
  counts = Counts(plan_of({"pairs", "numbers"}));
  EXPECT_EQ(counts["dot"], 1);
  EXPECT_EQ(counts["dot_grad"], 1);
}

TEST(Fuse, WhatLiesOnTwoDevicesStaysApart) {
  JobConfig job = TinyJob(Mlp());
  job.parallel.place = {{"m.1.relu*", Device::kGpu}};
  const Plan plan = PlanOf(job);
  std::map<std::string, int> counts = Counts(plan);
  EXPECT_EQ(counts["dense_layer"], 4);  // One of them is without its activation.
  EXPECT_EQ(counts["relu"], 1);
  EXPECT_EQ(counts["relu_grad"], 1);
  EXPECT_EQ(counts["dense_layer_back"], 2);
}

TEST(Fuse, ProductsAreMadeInTheJobsArithmetic) {
  for (const std::string math : {"bf16", "tf32"}) {
    JobConfig job = TinyJob(Mlp());
    job.train.math = math;
    const Plan plan = PlanOf(job);
    size_t products = 0;
    for (const Node& node : plan.graph.nodes) {
      if (!node.op.ends_with("matmul") && !node.op.starts_with("dense_layer")) continue;
      EXPECT_EQ(TextAttr(node.attrs, "math", "fp32"), math) << node.name;
      ++products;
    }
    EXPECT_EQ(products, 11u);
  }
  for (const Node& node : PlanOf(TinyJob(Mlp())).graph.nodes) {
    EXPECT_FALSE(node.attrs.contains("math")) << node.name;
  }
}

}  // namespace
}  // namespace dt::scheduler
