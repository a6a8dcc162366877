#include "ops/dense/product_gradient.h"

namespace dt {
namespace {

Attrs Transposed(bool a, bool b) {
  Attrs attrs;
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
    const auto grad = ta ? context.Add(op, {b, d}, Transposed(tb, true))
                         : context.Add(op, {d, b}, Transposed(false, !tb));
    context.SetInputGrad(0, grad[0]);
  }
  if (context.needs_grad(1)) {
    const auto grad = tb ? context.Add(op, {d, a}, Transposed(true, ta))
                         : context.Add(op, {a, d}, Transposed(!ta, false));
    context.SetInputGrad(1, grad[0]);
  }
}

}  // namespace dt
