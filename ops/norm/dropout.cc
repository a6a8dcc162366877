#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// dropout(x [B, …]): in training, elements are zeroed with probability `rate` and the others
// divided by 1 - rate. In evaluation it is the identity. The zeroed elements are a function of
// (seed, node, step, position of the sample in the epoch, element of the sample). dropout_grad(dy)
// draws the same mask; its attribute `mask_of` is the forward node. For a part of the elements,
// `first` is where it begins in each dimension, and `whole` how long the dimension is.
Status InferDropout(InferContext& context) {
  DT_TRY_STATUS(InferSame(context));
  const double rate = FloatAttr(context.node.attrs, "rate", 0.5);
  if (!(rate >= 0 && rate < 1)) return Invalid("dropout: rate {} is outside [0, 1)", rate);
  if (context.in(0).shape.empty() || context.in(0).shape[0] != Dim{kBatch, 1}) {
    return Invalid("dropout: the first dimension of {} must be the batch", context.shape_text(0));
  }
  return OkStatus();
}

Status DropoutGradient(GradientContext& context) {
  const Node& node = context.node();
  Attrs attrs = node.attrs;
  attrs["mask_of"] = node.name;
  context.SetInputGrad(0, context.Add("dropout_grad", {context.output_grad(0)}, attrs)[0]);
  return OkStatus();
}

constexpr AttrSpec kAttrs[] = {{.name = "rate", .type = AttrType::kFloat},
                               {.name = "first", .type = AttrType::kInts},
                               {.name = "whole", .type = AttrType::kInts}};
constexpr AttrSpec kGradAttrs[] = {{.name = "rate", .type = AttrType::kFloat},
                                   {.name = "first", .type = AttrType::kInts},
                                   {.name = "whole", .type = AttrType::kInts},
                                   {.name = "mask_of", .type = AttrType::kText, .required = true}};
constexpr OpSpec kSpecs[] = {
    {.name = "dropout",
     .infer = InferDropout,
     .gradient = DropoutGradient,
     .sharding = {.loops = "&*->*|first=*"},
     .attrs = kAttrs},
    {.name = "dropout_grad",
     .infer = InferDropout,
     .sharding = {.loops = "&*->*|first=*"},
     .user_visible = false,
     .attrs = kGradAttrs},
};

}  // namespace

std::span<const OpSpec> DropoutSpecs() { return kSpecs; }

}  // namespace dt
