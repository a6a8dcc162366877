#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// bce_with_logits(logits [B, 1], label [B, 1], weight [B, 1] optional): [1], the sum over the
// samples of weight · (-label · log p - (1 - label) · log(1 - p)) with p = sigmoid(logit), divided
// by the number of samples of the whole step. The loss of samples with label 1 is multiplied by the
// attribute pos_weight (default 1). mse is the same with weight · (value - label)².
// focal_with_logits is the same with weight · -a · (1 - q)^gamma · log q, where q is p and a is
// alpha for label 1, and q is 1 - p and a is 1 - alpha for label 0 (Lin et al., "Focal loss for
// dense object detection", ICCV 2017). The gradients take (dloss [1], logits, label, weight).
Status CheckColumns(const InferContext& context, size_t first) {
  const SymShape form = {Dim{kBatch, 1}, Const(1)};
  const char* const names[] = {"the prediction", "the label", "the weight"};
  for (size_t i = first; i < context.in_count(); ++i) {
    DT_TRY_STATUS(ExpectFloat(context, i));
    DT_TRY_STATUS(ExpectShape(context, i, form, names[i - first]));
  }
  return OkStatus();
}

Status InferLoss(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2, 3));
  DT_TRY_STATUS(CheckColumns(context, 0));
  context.outputs = {Output(context.in(0).dtype, {Const(1)})};
  return OkStatus();
}

Status InferLossGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 3, 4));
  DT_TRY_STATUS(ExpectShape(context, 0, {Const(1)}, "the gradient of the loss"));
  DT_TRY_STATUS(CheckColumns(context, 1));
  context.outputs = {Output(context.in(1).dtype, context.in(1).shape)};
  return OkStatus();
}

// Labels and weights get no gradient.
Status LossGradient(GradientContext& context) {
  if (!context.needs_grad(0)) return OkStatus();
  std::vector<ValueIndex> inputs = context.node().inputs;
  inputs.insert(inputs.begin(), context.output_grad(0));
  const std::string op = context.node().op + "_grad";
  context.SetInputGrad(0, context.Add(op, std::move(inputs), context.node().attrs)[0]);
  return OkStatus();
}

constexpr AttrSpec kBceAttrs[] = {{.name = "pos_weight", .type = AttrType::kFloat}};
constexpr AttrSpec kFocalAttrs[] = {{.name = "gamma", .type = AttrType::kFloat, .required = true},
                                    {.name = "alpha", .type = AttrType::kFloat, .required = true}};

// Users write losses in the job's `losses`, not as nodes.
constexpr OpSpec kSpecs[] = {
    {.name = "bce_with_logits",
     .infer = InferLoss,
     .gradient = LossGradient,
     .sharding = {.loops = "b1,b1,b1->1"},
     .user_visible = false,
     .attrs = kBceAttrs},
    {.name = "bce_with_logits_grad",
     .infer = InferLossGrad,
     .sharding = {.loops = "1,b1,b1,b1->b1"},
     .user_visible = false,
     .attrs = kBceAttrs},
    {.name = "focal_with_logits",
     .infer = InferLoss,
     .gradient = LossGradient,
     .sharding = {.loops = "b1,b1,b1->1"},
     .user_visible = false,
     .attrs = kFocalAttrs},
    {.name = "focal_with_logits_grad",
     .infer = InferLossGrad,
     .sharding = {.loops = "1,b1,b1,b1->b1"},
     .user_visible = false,
     .attrs = kFocalAttrs},
    {.name = "mse",
     .infer = InferLoss,
     .gradient = LossGradient,
     .sharding = {.loops = "b1,b1,b1->1"},
     .user_visible = false},
    {.name = "mse_grad",
     .infer = InferLossGrad,
     .sharding = {.loops = "1,b1,b1,b1->b1"},
     .user_visible = false},
};

}  // namespace

std::span<const OpSpec> LossSpecs() { return kSpecs; }

}  // namespace dt
