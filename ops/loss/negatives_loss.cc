#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// Losses of a positive item against N negative ones. x [B, 1 + N] are scores, the positive item's
// first; weight [B, 1] is optional. The result [1] is the sum over the samples of weight · loss,
// divided by the number of samples of the whole step, where the loss of a sample is
//   bpr              the mean over j of log(1 + exp(x_j - x_0)) (Rendle et al., "BPR: Bayesian
//                    personalized ranking from implicit feedback", UAI 2009)
//   sampled_softmax  log(Σ_j exp x_j) - x_0, where j = 0 is one of the terms
// The gradients take (dloss [1], x, weight).
Status CheckScores(const InferContext& context, size_t first) {
  for (size_t i = first; i < context.in_count(); ++i) DT_TRY_STATUS(ExpectFloat(context, i));
  DT_TRY_STATUS(ExpectRank(context, first, 2, "[B, 1 + negatives]"));
  const SymShape& x = context.in(first).shape;
  if (x[1].symbol != kConstant || x[1].times < 2) {
    return Invalid("{}: needs a negative or more, has scores {}", context.node.op,
                   context.shape_text(first));
  }
  if (context.in_count() == first + 1) return OkStatus();
  return ExpectShape(context, first + 1, {x[0], Const(1)}, "the weight");
}

Status InferNegatives(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 1, 2));
  DT_TRY_STATUS(CheckScores(context, 0));
  context.outputs = {Output(context.in(0).dtype, {Const(1)})};
  return OkStatus();
}

Status InferNegativesGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2, 3));
  DT_TRY_STATUS(ExpectShape(context, 0, {Const(1)}, "the gradient of the loss"));
  DT_TRY_STATUS(CheckScores(context, 1));
  context.outputs = {Output(context.in(1).dtype, context.in(1).shape)};
  return OkStatus();
}

// Weights get no gradient.
Status NegativesGradient(GradientContext& context) {
  if (!context.needs_grad(0)) return OkStatus();
  std::vector<ValueIndex> inputs = context.node().inputs;
  inputs.insert(inputs.begin(), context.output_grad(0));
  const std::string op = context.node().op + "_grad";
  context.SetInputGrad(0, context.Add(op, std::move(inputs), {})[0]);
  return OkStatus();
}

// Users write these in the job's `loss`, not as nodes.
constexpr OpSpec kSpecs[] = {
    {.name = "bpr",
     .infer = InferNegatives,
     .gradient = NegativesGradient,
     .sharding = {.loops = "b.,b1->1"},
     .user_visible = false},
    {.name = "bpr_grad",
     .infer = InferNegativesGrad,
     .sharding = {.loops = "1,b.,b1->b."},
     .user_visible = false},
    {.name = "sampled_softmax",
     .infer = InferNegatives,
     .gradient = NegativesGradient,
     .sharding = {.loops = "b.,b1->1"},
     .user_visible = false},
    {.name = "sampled_softmax_grad",
     .infer = InferNegativesGrad,
     .sharding = {.loops = "1,b.,b1->b."},
     .user_visible = false},
};

}  // namespace

std::span<const OpSpec> NegativesLossSpecs() { return kSpecs; }

}  // namespace dt
