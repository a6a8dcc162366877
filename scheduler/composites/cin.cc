// xDeepFM's compressed interaction network: Lian et al., "xDeepFM" (KDD 2018), section 3.
#include "scheduler/composites/composite.h"

namespace dt::scheduler {
namespace {

// Row h of layer k, with D elements: x^k_h = Σ_ij W^h_ij (x^{k-1}_i ∘ x^0_j). With elements as rows
// and fields as columns this is a matrix product: outer(x^0, x^{k-1}) · W.
Result<ValueIndex> CinLayer(GraphBuilder& b, ValueIndex x0, ValueIndex x, int64_t units,
                            const std::string& prefix) {
  const int64_t pairs = b.shape(x0).back().times * b.shape(x).back().times;
  const InitSpec init = InitOf(b, {InitKind::kXavierNormal, 0});
  DT_TRY(const ValueIndex weight,
         b.Parameter({prefix + "weight", {pairs, units}, init, pairs, units}));
  DT_TRY(const ValueIndex y, b.Add("cin_layer", prefix + "layer", {x0, x, weight}));
  return Activate(b, y, TextAttr(b.user().attrs, "activation", "none"), prefix);
}

Result<ValueIndex> Part(GraphBuilder& b, ValueIndex x, const std::string& name, Attrs range) {
  range["axis"] = static_cast<int64_t>(b.shape(x).size()) - 1;
  return b.Add("slice", name, {x}, std::move(range));
}

// The result holds each layer's rows, summed over D. With split_half, the first half of a layer's
// rows feeds the next layer and only the second half goes to the result; all rows of the last layer
// go to the result.
Result<ValueIndex> Cin(GraphBuilder& b, std::span<const Operand> operands) {
  DT_TRY(std::vector<ValueIndex> values, b.Values(operands, false));
  DT_TRY(const ValueIndex fields, b.Fields(std::move(values)));
  DT_TRY(const ValueIndex x0,
         b.Add("transpose", "columns", {fields}, {{"perm", std::vector<int64_t>{0, 2, 1}}}));
  const std::vector<int64_t> units = IntsAttr(b.user().attrs, "units");
  const bool split = BoolAttr(b.user().attrs, "split_half", true);
  std::vector<ValueIndex> results;
  ValueIndex x = x0;
  for (size_t i = 0; i < units.size(); ++i) {
    const std::string prefix = fmt::format("{}.", i);
    const bool halved = split && i + 1 < units.size();
    if (halved && units[i] < 2) return b.Error("a layer of 1 unit cannot be split in halves");
    DT_TRY(x, CinLayer(b, x0, x, units[i], prefix));
    DT_TRY(ValueIndex sums,
           b.Add("reduce_sum", prefix + "sum", {x}, {{"axis", std::vector<int64_t>{1}}}));
    if (halved) {
      DT_TRY(x, Part(b, x, prefix + "hidden", {{"begin", int64_t{0}}, {"end", units[i] / 2}}));
      DT_TRY(sums, Part(b, sums, prefix + "direct", {{"begin", units[i] / 2}, {"end", units[i]}}));
    }
    results.push_back(sums);
  }
  if (results.size() == 1) return results[0];
  return b.Add("concat", "", std::move(results), {{"axis", int64_t{1}}});
}

constexpr Composite kComposites[] = {{"cin", Cin}};

}  // namespace

std::span<const Composite> CinComposites() { return kComposites; }

}  // namespace dt::scheduler
