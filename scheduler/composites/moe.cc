// Mixture of experts in which each sample uses k: Shazeer et al., "Outrageously Large Neural
// Networks: The Sparsely-Gated Mixture-of-Experts Layer" (ICLR 2017), equations 1 and 3 without
// noise; for k = 1, Fedus et al., "Switch Transformers" (JMLR 2022), equations 1 and 2.
#include "scheduler/composites/composite.h"

namespace dt::scheduler {
namespace {

ValueIndex OutputOf(GraphBuilder& b, ValueIndex first, size_t i) {
  const Graph& graph = b.graph();
  return graph.nodes[graph.value(first).producer].outputs[i];
}

// The experts of each sample, u32 [B, k], and their weights in its sum, [B, k].
struct Routes {
  ValueIndex experts = kNone, gates = kNone;
};
Result<Routes> Route(GraphBuilder& b, ValueIndex x, int64_t experts, int64_t k) {
  const int64_t width = b.shape(x)[1].times;
  const InitSpec init = InitOf(b, {InitKind::kXavierNormal, 0});
  DT_TRY(const ValueIndex weight,
         b.Parameter({"router.weight", {width, experts}, init, width, experts}));
  DT_TRY(ValueIndex scores, b.Add("matmul", "router.matmul", {x, weight}));
  // With k = 1 the softmax goes before the choice: over one chosen expert alone it is always 1, and
  // the router would learn nothing.
  if (k == 1) {
    DT_TRY(scores, b.Add("softmax", "router.softmax", {scores}));
  }
  DT_TRY(const ValueIndex best, b.Add("top_k", "router.top_k", {scores}, {{"k", k}}));
  Routes routes{.experts = OutputOf(b, best, 1), .gates = best};
  if (k > 1) {
    DT_TRY(routes.gates, b.Add("softmax", "gates", {best}));
  }
  return routes;
}

// Layer `i` of all experts, like a layer of `mlp`: rows [k B, D] become [k B, units].
Result<ValueIndex> Layer(GraphBuilder& b, ValueIndex rows, ValueIndex ends, size_t i) {
  const Attrs& attrs = b.user().attrs;
  const std::vector<int64_t> all_units = IntsAttr(attrs, "units");
  const int64_t experts = b.shape(ends)[0].times, width = b.shape(rows)[1].times;
  const int64_t units = all_units[i];
  const std::string prefix = fmt::format("{}.", i);
  const InitSpec init = InitOf(b, {InitKind::kXavierNormal, 0});
  DT_TRY(const ValueIndex weight,
         b.Parameter({prefix + "weight", {experts, width, units}, init, width, units}));
  std::vector<ValueIndex> inputs = {rows, ends, weight};
  if (BoolAttr(attrs, "bias", true)) {
    DT_TRY(const ValueIndex bias,
           b.Parameter({prefix + "bias", {experts, units}, {InitKind::kZeros, 0}}));
    inputs.push_back(bias);
  }
  DT_TRY(const ValueIndex y, b.Add("expert_matmul", prefix + "expert_matmul", std::move(inputs)));
  if (i + 1 == all_units.size() && units == 1) return y;
  return Activate(b, y, TextAttr(attrs, "activation", "relu"), prefix);
}

Result<ValueIndex> Moe(GraphBuilder& b, std::span<const Operand> operands) {
  const Attrs& attrs = b.user().attrs;
  const int64_t experts = IntAttr(attrs, "experts", 1), k = IntAttr(attrs, "k", 2);
  if (k > experts)
    return b.Error("k is {}, expected at most its number of experts, {}", k, experts);
  DT_TRY(std::vector<ValueIndex> values, b.Values(operands, true));
  DT_TRY(const ValueIndex x, b.Flat(std::move(values), ""));
  DT_TRY(const Routes routes, Route(b, x, experts, k));
  DT_TRY(ValueIndex rows,
         b.Add("dispatch", "dispatch", {x, routes.experts}, {{"experts", experts}}));
  const ValueIndex ends = OutputOf(b, rows, 1), places = OutputOf(b, rows, 2);
  for (size_t i = 0; i < IntsAttr(attrs, "units").size(); ++i) {
    DT_TRY(rows, Layer(b, rows, ends, i));
  }
  return b.Add("combine", "", {rows, places, routes.gates});
}

constexpr Composite kComposites[] = {{"moe", Moe}};

}  // namespace

std::span<const Composite> MoeComposites() { return kComposites; }

}  // namespace dt::scheduler
