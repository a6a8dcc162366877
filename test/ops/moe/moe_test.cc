// Tests of expert operators beyond the table of cases: written-out choices, a layer with one
// expert, and inputs that the shape rules refuse.
#include <set>

#include <gtest/gtest.h>

#include "test/ops/cases/case_maker.h"

namespace dt::test {
namespace {

const Dim B = Batch();

CaseInput Indexes(SymShape shape, Numbers values) {
  return {std::move(shape), std::move(values), true, false};
}

TEST(Dispatch, SortsByExpertThenByRowThenByChoice) {
  const OpCase c = CaseOf(
      "dispatch", {{"experts", int64_t{3}}},
      {{{B, Const(1)}, {10, 20, 30}}, Indexes({B, Const(2)}, {2, 0, /**/ 0, 0, /**/ 7, 0})}, 3);
  const std::vector<Numbers> out = RunCase(c, DType::kF32).outputs;
  EXPECT_EQ(out[0], Numbers({10, 20, 20, 30, 10, 30}));
  EXPECT_EQ(out[1], Numbers({4, 4, 6})) << "an expert beyond the last counts as the last";
  EXPECT_EQ(out[2], Numbers({4, 0, /**/ 1, 2, /**/ 5, 3}));
}

// The two numbers are the same sum computed in two ways.
void ExpectNear(const Numbers& got, const Numbers& wanted, double bound) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], bound) << i;
}

TEST(ExpertMatmul, OfOneExpertIsALayer) {
  constexpr int64_t kRows = 4500;
  const SymShape x = {B, Const(40)};
  OpCase expert = CaseOf("expert_matmul", {}, {}, kRows);
  expert.inputs = {Floats(expert, x, 1), Indexes({Const(1)}, {kRows}),
                   Floats(expert, {Const(1), Const(40), Const(24)}, 2),
                   Floats(expert, {Const(1), Const(24)}, 3)};
  OpCase layer = CaseOf("dense_layer", {}, {}, kRows);
  layer.inputs = {expert.inputs[0], Floats(layer, {Const(40), Const(24)}, 2),
                  Floats(layer, {Const(24)}, 3)};
  ExpectNear(RunCase(expert, DType::kF32).outputs[0], RunCase(layer, DType::kF32).outputs[0], 1e-4);
  const Numbers dy = Normals(kRows * 24, 4);
  const std::vector<Numbers> grads = GradientOf(expert, {dy}, DType::kF32);
  OpCase product = CaseOf("matmul", {}, {layer.inputs[0], layer.inputs[1]}, kRows);
  // Sums of 4,500 terms each.
  ExpectNear(grads[2], GradientOf(product, {dy}, DType::kF32)[1], 1e-3);
  OpCase bias = CaseOf("bias_add", {}, {{{B, Const(24)}, dy}, layer.inputs[2]}, kRows);
  EXPECT_EQ(grads[3], GradientOf(bias, {dy}, DType::kF32)[1]);
}

struct Refusal {
  std::string op;
  Attrs attrs;
  std::vector<SymShape> shapes;
  std::string message;
  std::set<size_t> index = {1};
};

TEST(Experts, RefuseWithASentence) {
  const SymShape x = {B, Const(4)}, pairs = {B, Const(2)}, rows = {Batch(2), Const(4)};
  const SymShape ends = {Const(3)}, weight = {Const(3), Const(4), Const(5)};
  const Attrs two = {{"experts", int64_t{2}}};
  const std::vector<Refusal> refusals = {
      {"dispatch",
       two,
       {{B, Const(2), Const(4)}, pairs},
       "dispatch: input 1 (\"in0\") must be [B, D], is [B, 2, 4]"},
      {"dispatch",
       two,
       {x, pairs},
       "dispatch: input 2 (\"in1\") holds floats, row positions are needed",
       {}},
      {"dispatch",
       two,
       {x, {Const(8), Const(2)}},
       "dispatch: choices of [8, 2] do not fit rows of [B, 4]"},
      {"dispatch",
       two,
       {x, {B, Const(3)}},
       "dispatch: 3 choices for each row need as many experts, there are 2"},
      {"dispatch",
       {{"experts", int64_t{65536}}},
       {x, pairs},
       "dispatch: 65536 experts; at most 65535 are possible"},
      {"combine", {}, {x, pairs}, "combine: the rows must be [2*B, 4], is [B, 4]"},
      {"combine", {}, {rows, pairs, x}, "combine: the gates must be [B, 2], is [B, 4]"},
      {"combine_grad", {}, {x, pairs, x}, "combine_grad: the gates must be [B, 2], is [B, 4]"},
      {"combine_grad",
       {},
       {x, {Const(1), Const(2)}},
       "combine_grad: choices of [1, 2] do not fit rows of [B, 4]"},
      {"combine_gates_grad",
       {},
       {x, pairs, x},
       "combine_gates_grad: the rows must be [2*B, 4], is [B, 4]"},
      {"expert_matmul",
       {},
       {{B, Const(5)}, ends, weight},
       "expert_matmul: a weight of [3, 4, 5] does not fit rows of [B, 5] of 3 experts"},
      {"expert_matmul",
       {},
       {x, {Const(2)}, weight},
       "expert_matmul: a weight of [3, 4, 5] does not fit rows of [B, 4] of 2 experts"},
      {"expert_matmul",
       {{"transpose_b", true}},
       {x, ends, weight},
       "expert_matmul: a weight of [3, 4, 5] transposed does not fit rows of [B, 4] of 3 experts"},
      {"expert_matmul",
       {},
       {x, ends, weight, {Const(5)}},
       "expert_matmul: the bias must be [3, 5], is [5]"},
      {"expert_matmul",
       {},
       {x, {B}, weight},
       "expert_matmul: the ends of the experts' rows are [B], their number must not vary"},
      {"expert_matmul_grad",
       {},
       {x, ends, rows},
       "expert_matmul_grad: numbers of rows differ: [B, 4] and [2*B, 4]"},
      {"expert_sum", {}, {x, pairs}, "expert_sum: input 2 (\"in1\") must be [experts], is [B, 2]"},
  };
  for (const Refusal& refusal : refusals) {
    OpCase c = CaseOf(refusal.op, refusal.attrs, {}, 0);
    for (size_t i = 0; i < refusal.shapes.size(); ++i) {
      c.inputs.push_back({refusal.shapes[i], {}, refusal.index.contains(i)});
    }
    const Result<std::vector<Value>> inferred = InferCase(c);
    EXPECT_EQ(inferred.ok() ? "accepted" : std::string(MessageOf(inferred.status())),
              refusal.message);
  }
}

}  // namespace
}  // namespace dt::test
