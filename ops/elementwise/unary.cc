#include <limits>

#include "ops/infer.h"
#include "ops/loops.h"
#include "ops/op_families.h"

namespace dt {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Status InferGrad(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  return InferAllSame(context);
}

Status InferClip(InferContext& context) {
  const double low = FloatAttr(context.node.attrs, "min", -kInfinity);
  const double high = FloatAttr(context.node.attrs, "max", kInfinity);
  if (!(low <= high)) return Invalid("clip: min {} is above max {}", low, high);
  return context.node.op == "clip_grad" ? InferGrad(context) : InferSame(context);
}

// The operator `<name>_grad` takes the output (or the input) and the output's gradient.
template <bool from_output>
Status OwnGradient(GradientContext& context) {
  const Node& node = context.node();
  const ValueIndex known = from_output ? node.outputs[0] : node.inputs[0];
  const std::string op = node.op + "_grad";
  const Attrs attrs = node.attrs;
  context.SetInputGrad(0, context.Add(op, {known, context.output_grad(0)}, attrs)[0]);
  return OkStatus();
}

// The gradient is the same operator with the same attributes.
Status LinearGradient(GradientContext& context) {
  const std::string op = context.node().op;
  const Attrs attrs = context.node().attrs;
  context.SetInputGrad(0, context.Add(op, {context.output_grad(0)}, attrs)[0]);
  return OkStatus();
}

Status ExpGradient(GradientContext& context) {
  const ValueIndex y = context.node().outputs[0];
  context.SetInputGrad(0, context.Add("mul", {y, context.output_grad(0)}, {})[0]);
  return OkStatus();
}

Status PassGradient(GradientContext& context) {
  context.SetInputGrad(0, context.output_grad(0));
  return OkStatus();
}

constexpr AttrSpec kFactor[] = {{.name = "factor", .type = AttrType::kFloat, .required = true}};
constexpr AttrSpec kConst[] = {{.name = "value", .type = AttrType::kFloat, .required = true}};
constexpr AttrSpec kDropout[] = {{.name = "dropout", .type = AttrType::kFloat}};
constexpr AttrSpec kRange[] = {{.name = "min", .type = AttrType::kFloat},
                               {.name = "max", .type = AttrType::kFloat}};

constexpr OpSpec Unary(std::string_view name, Status (*gradient)(GradientContext&),
                       std::span<const AttrSpec> attrs = {}, std::string_view linear = {}) {
  return {.name = name,
          .infer = InferSame,
          .gradient = gradient,
          .sharding = {.derive = BroadcastLoops, .linear = linear},
          .attrs = attrs};
}

constexpr OpSpec UnaryGrad(std::string_view name, std::span<const AttrSpec> attrs = {}) {
  return {.name = name,
          .infer = InferGrad,
          .sharding = {.derive = BroadcastLoops, .linear = ".&"},
          .user_visible = false,
          .attrs = attrs};
}

constexpr OpSpec kSpecs[] = {
    Unary("relu", OwnGradient<true>),
    Unary("sigmoid", OwnGradient<true>),
    Unary("tanh", OwnGradient<true>),
    Unary("gelu", OwnGradient<false>),  // x Φ(x), exactly.
    Unary("exp", ExpGradient),
    Unary("log", OwnGradient<false>),
    Unary("sqrt", OwnGradient<true>),
    Unary("square", OwnGradient<false>),
    Unary("neg", LinearGradient, {}, "&"),
    Unary("scale", LinearGradient, kFactor, "&"),
    Unary("add_const", PassGradient, kConst),
    Unary("stop_gradient", nullptr, {}, "&"),
    // x, of which every device of a team has the part that the node's strategy says, and no partial
    // sum. Collectives bring it there.
    Unary("redistribute", PassGradient),
    {.name = "clip",
     .infer = InferClip,
     .gradient = OwnGradient<false>,
     .sharding = {.derive = BroadcastLoops},
     .attrs = kRange},
    // (y, dy). With a rate `dropout`, which the pass `fuse` sets, y is what a dropout made of the
    // ReLU's result, and dy is divided by 1 - rate.
    UnaryGrad("relu_grad", kDropout),
    UnaryGrad("sigmoid_grad"),  // (y, dy)
    UnaryGrad("tanh_grad"),     // (y, dy)
    UnaryGrad("gelu_grad"),     // (x, dy)
    UnaryGrad("log_grad"),      // (x, dy)
    UnaryGrad("sqrt_grad"),     // (y, dy)
    UnaryGrad("square_grad"),   // (x, dy)
    {.name = "clip_grad",       // (x, dy)
     .infer = InferClip,
     .sharding = {.derive = BroadcastLoops, .linear = ".&"},
     .user_visible = false,
     .attrs = kRange},
};

}  // namespace

std::span<const OpSpec> UnarySpecs() { return kSpecs; }

}  // namespace dt
