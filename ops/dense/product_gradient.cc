#include "ops/dense/product_gradient.h"

namespace dt {
namespace {

Attrs Transposed(const Attrs& of, bool a, bool b) {
  Attrs attrs;
  if (const auto math = of.find("math"); math != of.end()) attrs.insert(*math);
  if (a) attrs["transpose_a"] = true;
  if (b) attrs["transpose_b"] = true;
  return attrs;
}

}  // namespace

void AddProductGradient(GradientContext& context, std::string_view op) {
  const Attrs attrs = context.node().attrs;
  const bool ta = BoolAttr(attrs, "transpose_a", false);
  const bool tb = BoolAttr(attrs, "transpose_b", false);
  const ValueIndex a = context.node().inputs[0], b = context.node().inputs[1];
  const ValueIndex d = context.output_grad(0);
  if (context.needs_grad(0)) {
    const auto grad = ta ? context.Add(op, {b, d}, Transposed(attrs, tb, true))
                         : context.Add(op, {d, b}, Transposed(attrs, false, !tb));
    context.SetInputGrad(0, grad[0]);
  }
  if (context.needs_grad(1)) {
    const auto grad = tb ? context.Add(op, {d, a}, Transposed(attrs, true, ta))
                         : context.Add(op, {a, d}, Transposed(attrs, !ta, false));
    context.SetInputGrad(1, grad[0]);
  }
}

Status ExpectMath(const InferContext& context) {
  const std::string math = TextAttr(context.node.attrs, "math", "fp32");
  if (math == "fp32" || math == "tf32" || math == "bf16") return OkStatus();
  return Invalid("{}: math \"{}\" is none of fp32, tf32, bf16", context.node.op, math);
}

}  // namespace dt
