// Tests of step nodes (clipping, L2, updates, running values of batch norm), and of properties of
// dropout and losses that are not in their definitions.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/update/attrs.h"
#include "ops/update/update.h"
#include "test/ops/op_case.h"

namespace dt::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CaseInput Of(SymShape shape, Numbers values) { return {std::move(shape), std::move(values)}; }

OpCase Step(std::string op, Attrs attrs, std::vector<CaseInput> inputs) {
  OpCase c;
  c.name = op;
  c.op = std::move(op);
  c.attrs = std::move(attrs);
  c.inputs = std::move(inputs);
  return c;
}

TEST(ClipByGlobalNorm, ScalesAllGradientsByOneFactor) {
  const auto clip = [](double limit) {
    return RunCase(Step("clip_by_global_norm", {{"clip_norm", limit}, {"grads", int64_t{2}}},
                        {Of({Const(2)}, {3, 0}), Of({Const(1), Const(1)}, {4}),
                         Of({Const(2)}, {3, 0}), Of({Const(1)}, {4})}),
                   DType::kF64)
        .outputs;
  };
  const std::vector<Numbers> cut = clip(1.0);
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_NEAR(cut[0][0], 0.6, 1e-6);
  EXPECT_NEAR(cut[1][0], 0.8, 1e-6);
  EXPECT_THAT(clip(10.0), ElementsAre(Numbers{3, 0}, Numbers{4}));
  EXPECT_THAT(clip(0.0), ElementsAre(Numbers{3, 0}, Numbers{4}));
}

TEST(RowNorms, BitsDoNotDependOnThreads) {
  const OpCase c = Step("row_norms", {}, {Of({Const(700), Const(100)}, Normals(70000, 1))});
  const auto one = RunCase(c, DType::kF32, 1).outputs;
  EXPECT_EQ(RunCase(c, DType::kF32, 2).outputs, one);
  double squares = 0;
  for (int i = 0; i < 100; ++i) squares += c.inputs[0].values[i] * c.inputs[0].values[i];
  EXPECT_NEAR(one[0][0], std::sqrt(squares), 1e-5);
  // Squares that float32 cannot hold.
  const OpCase large = Step("row_norms", {}, {Of({Const(1), Const(2)}, {3e30, 4e30})});
  EXPECT_NEAR(RunCase(large, DType::kF32).outputs[0][0], 5e30, 1e25);
}

TEST(AddL2, AddsTheParameter) {
  const OpCase c = Step("add_l2", {{"l2", 0.5}}, {Of({Const(2)}, {1, 2}), Of({Const(2)}, {4, -4})});
  EXPECT_THAT(RunCase(c, DType::kF32).outputs, ElementsAre(Numbers{3, 0}));
}

TEST(UpdateNode, WritesTheParameterAndItsStatesInPlace) {
  for (const OptimizerInfo& optimizer : kOptimizers) {
    if (optimizer.row_states > 0) continue;  // This optimizer is for tables only.
    const OptimizerSpec spec{.kind = optimizer.kind, .lr = 0.1f, .weight_decay = 0.1f};
    constexpr size_t kSize = 40000;  // Enough for several pieces of work.
    OpCase c = Step("update", OptimizerAttrs(spec), {});
    for (uint64_t i = 0; i < 2 + DenseStates(spec); ++i) {
      c.inputs.push_back(Of({Const(kSize)}, Normals(kSize, i)));
      for (double& x : c.inputs.back().values) x = i < 2 ? x : std::fabs(x);
    }
    c.run = {.step = 5, .lr_scale = 0.5f};
    std::vector<std::vector<float>> want;
    for (const CaseInput& in : c.inputs) want.emplace_back(in.values.begin(), in.values.end());
    std::vector<float*> states;
    for (size_t s = 2; s < want.size(); ++s) states.push_back(want[s].data());
    UpdateDense(spec, {.step = 5, .lr_scale = 0.5f}, want[0], states, want[1]);
    const std::vector<Numbers> got = RunCase(c, DType::kF32, 2).inputs;
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(got[i], Numbers(want[i].begin(), want[i].end()))
          << optimizer.name << " input " << i;
    }
  }
}

TEST(TakeRows, GivesTheValuesOfTheNumberedRows) {
  OpCase c = Step("take_rows", {{"dim", int64_t{2}}},
                  {Of({Const(3), Const(3)}, {1, 2, 90, 3, 4, 91, 5, 6, 92})});
  c.inputs.push_back({{Const(4)}, {2, 0, 0, 1}, true, false});
  EXPECT_THAT(RunCase(c, DType::kF32).outputs, ElementsAre(Numbers{5, 6, 1, 2, 1, 2, 3, 4}));
}

// Updates of rows on workers have the bits of updates on servers, for every optimizer, with L2
// after gaps, clipping, and schedules.
TEST(UpdateRows, GivesTheBitsOfRowUpdate) {
  for (const OptimizerInfo& optimizer : kOptimizers) {
    for (const bool scheduled : {false, true}) {
      const OptimizerSpec spec{.kind = optimizer.kind,
                               .lr = 0.1f,
                               .weight_decay = 0.1f,
                               .l2 = 0.01f,
                               .l2_scope = scheduled ? L2Scope::kGap : L2Scope::kTouched,
                               .clip_row_norm = 1.5f};
      constexpr uint32_t kDim = 6, kRows = 900;  // Enough for several pieces of work.
      const uint32_t width = kDim + StateFloats(spec, kDim);
      OpCase c = Step("update_rows", RowOptimizerAttrs(spec, scheduled),
                      {Of({Const(2 * kRows), Const(width)}, Normals(size_t{2} * kRows * width, 1)),
                       {{Const(kRows)}, {}, true, false},
                       Of({Const(kRows), Const(kDim)}, Normals(size_t{kRows} * kDim, 2)),
                       {{Const(kRows)}, {}, true, false}});
      for (double& x : c.inputs[0].values) x = std::fabs(x);
      std::vector<float> want(c.inputs[0].values.begin(), c.inputs[0].values.end());
      const std::vector<float> grads(c.inputs[2].values.begin(), c.inputs[2].values.end());
      c.run = {.step = 5, .lr_scale = 0.5f};
      const RowUpdate update(spec, {.step = 5, .lr_scale = scheduled ? 0.5f : 1.0f});
      for (uint32_t i = 0; i < kRows; ++i) {
        const uint32_t number = 2 * (kRows - 1 - i) + 1, gap = 1 + i % 5;
        c.inputs[1].values.push_back(number);
        c.inputs[3].values.push_back(gap);
        const std::span<float> row = std::span(want).subspan(size_t{number} * width, width);
        update.Apply(gap, row.first(kDim), row.subspan(kDim),
                     std::span(grads).subspan(size_t{i} * kDim, kDim));
      }
      EXPECT_EQ(RunCase(c, DType::kF32, 2).inputs[0], Numbers(want.begin(), want.end()))
          << optimizer.name;
    }
  }
}

TEST(BatchNormRunning, FoldsSlicesInOrderAndSkipsEmptyOnes) {
  const OpCase c =
      Step("batch_norm_running", {{"momentum", 0.5}},
           {Of({Const(1)}, {8}), Of({Const(1)}, {16}), Of({Const(3), Const(1)}, {4, 100, 2}),
            Of({Const(3), Const(1)}, {6, 100, 10}), Of({Const(3), Const(1)}, {4, 0, 1})});
  const std::vector<Numbers> after = RunCase(c, DType::kF64).inputs;
  EXPECT_DOUBLE_EQ(after[0][0], (8 + 4) / 2.0 / 2 + 2 / 2.0);
  // A variance of 6 over four samples is 8 unbiased; the variance of a single sample stays 10.
  EXPECT_DOUBLE_EQ(after[1][0], (16 + 8) / 2.0 / 2 + 10 / 2.0);
}

OpCase DropoutOf(int64_t batch, int64_t columns, RunInfo run) {
  OpCase c = Step("dropout", {{"rate", 0.25}}, {});
  c.sizes[kBatch] = batch;
  c.run = run;
  c.inputs = {Of({Batch(), Const(columns)}, Numbers(static_cast<size_t>(batch * columns), 1.0))};
  return c;
}

TEST(Dropout, ZeroesItsRateAndKeepsTheMean) {
  const Numbers out = RunCase(DropoutOf(2000, 100, {.seed = 1}), DType::kF64).outputs[0];
  const double zeros = static_cast<double>(std::ranges::count(out, 0.0));
  EXPECT_NEAR(zeros / 200000, 0.25, 0.005);  // The bound is five standard deviations.
  for (const double x : out) ASSERT_TRUE(x == 0 || std::fabs(x - 4.0 / 3) < 1e-12);
}

TEST(Dropout, MaskBelongsToTheSampleNotToTheSlice) {
  const Numbers whole = RunCase(DropoutOf(6, 37, {.first_sample = 100}), DType::kF32).outputs[0];
  Numbers parts = RunCase(DropoutOf(2, 37, {.first_sample = 100}), DType::kF32).outputs[0];
  const Numbers rest = RunCase(DropoutOf(4, 37, {.first_sample = 102}), DType::kF32).outputs[0];
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(whole, parts);
}

TEST(Dropout, MaskDiffersBySeedStepAndNode) {
  const auto mask = [](RunInfo run, const char* node) {
    OpCase c = DropoutOf(8, 64, run);
    c.op = "dropout_grad";
    c.attrs["mask_of"] = std::string(node);
    return RunCase(c, DType::kF32).outputs[0];
  };
  const Numbers one = mask({.seed = 1, .step = 1}, "a");
  EXPECT_EQ(mask({.seed = 1, .step = 1}, "a"), one);
  EXPECT_NE(mask({.seed = 2, .step = 1}, "a"), one);
  EXPECT_NE(mask({.seed = 1, .step = 2}, "a"), one);
  EXPECT_NE(mask({.seed = 1, .step = 1}, "b"), one);
}

TEST(Loss, StaysFiniteForLogitsOfAnySize) {
  OpCase c = Step("bce_with_logits", {}, {});
  c.sizes[kBatch] = 4;
  c.run.step_samples = 1;
  c.inputs = {Of({Batch(), Const(1)}, {200, -200, 200, -200}),
              Of({Batch(), Const(1)}, {1, 0, 0, 1})};
  c.inputs[1].smooth = false;
  EXPECT_NEAR(RunCase(c, DType::kF32).outputs[0][0], 400, 1e-3);
  const Numbers grad = GradientOf(c, {{1.0}}, DType::kF32)[0];
  EXPECT_THAT(grad, ElementsAre(0, ::testing::DoubleNear(0, 1e-30), 1, -1));
}

TEST(Loss, ALabelThatIsNoClassGivesNoNumber) {
  for (const double label : {-1.0, 3.0, 1e30}) {
    OpCase c = Step("softmax_cross_entropy", {}, {});
    c.sizes[kBatch] = 2;
    c.inputs = {Of({Batch(), Const(3)}, {1, 2, 3, 4, 5, 6}), Of({Batch(), Const(1)}, {0, label})};
    EXPECT_TRUE(std::isnan(RunCase(c, DType::kF32).outputs[0][0])) << label;
  }
}

TEST(Loss, StaysFiniteForScoresOfAnySize) {
  OpCase c = Step("in_batch_softmax", {{"temperature", 0.01}}, {});
  c.sizes[kBatch] = 2;
  c.run.step_samples = 1;
  c.inputs = {Of({Batch(), Const(1)}, {30, -30}), Of({Batch(), Const(1)}, {-1, 1})};
  EXPECT_NEAR(RunCase(c, DType::kF32).outputs[0][0], 12000, 1e-2);
  EXPECT_THAT(GradientOf(c, {{1.0}, Numbers(6, 0.0)}, DType::kF32)[1], ElementsAre(-6000, 6000));
}

TEST(Loss, SlicesOfAStepAddUpToTheMeanOfTheStep) {
  OpCase c = Step("mse", {}, {});
  c.run.step_samples = 3;
  c.sizes[kBatch] = 3;
  c.inputs = {Of({Batch(), Const(1)}, {1, 2, 3}), Of({Batch(), Const(1)}, {0, 0, 0})};
  const double whole = RunCase(c, DType::kF64).outputs[0][0];
  EXPECT_DOUBLE_EQ(whole, 14.0 / 3);
  c.sizes[kBatch] = 1;
  double sum = 0;
  for (const double x : {1.0, 2.0, 3.0}) {
    c.inputs[0].values = {x}, c.inputs[1].values = {0};
    sum += RunCase(c, DType::kF64).outputs[0][0];
  }
  EXPECT_DOUBLE_EQ(sum, whole);
}

// The number of a step's rows is a symbol of its own.
TEST(SumRows, HasTheShapesOfRowsOfTheStep) {
  Graph graph;
  const Dim keys{graph.SymbolNamed("U.item"), 1};
  const auto input = [&graph](DType dtype, SymShape shape) {
    Value value;
    value.dtype = dtype;
    value.shape = std::move(shape);
    return graph.AddValue(std::move(value));
  };
  Node node;
  node.op = "sum_rows";
  node.inputs = {input(DType::kF32, {keys, Const(4)}), input(DType::kU32, {keys})};
  InferContext context{graph, node, {}};
  const auto infer = FindOp("sum_rows")->infer;
  EXPECT_EQ(MessageOf(infer(context)), "sum_rows: slices is 0");
  node.attrs = {{"slices", int64_t{2}}};
  EXPECT_EQ(MessageOf(infer(context)), "sum_rows: [U.item] are no rows of a table on the worker");
  const Dim rows{graph.SymbolNamed("S.item"), 1};
  ASSERT_TRUE(infer(context).ok());
  ASSERT_EQ(context.outputs.size(), 3u);
  EXPECT_EQ(context.outputs[0].shape, SymShape({rows, Const(4)}));
  for (const size_t list : {1, 2}) {
    EXPECT_EQ(context.outputs[list].shape, SymShape({rows}));
    EXPECT_EQ(context.outputs[list].dtype, DType::kU32);
  }
  node.inputs.pop_back();
  EXPECT_EQ(MessageOf(infer(context)), "sum_rows: takes 2 inputs, has 1");
}

}  // namespace
}  // namespace dt::test
