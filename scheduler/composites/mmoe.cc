// Multi-gate mixture of experts: Ma et al., "Modeling Task Relationships in Multi-task Learning
// with Multi-gate Mixture-of-Experts" (KDD 2018), equations 6 and 7.
#include "scheduler/composites/composite.h"

namespace dt::scheduler {
namespace {

using Ints = std::vector<int64_t>;

// Expert i, with layers like those of `mlp`.
Result<ValueIndex> Expert(GraphBuilder& b, ValueIndex x, int64_t i) {
  const Ints units = IntsAttr(b.user().attrs, "units");
  for (size_t layer = 0; layer < units.size(); ++layer) {
    DT_TRY(x, FullLayer(b, x, units[layer], fmt::format("expert{}.{}.", i, layer)));
  }
  return x;
}

// The input of task t: the sum of all experts' results [B, experts, units], weighted by a softmax
// of x W_t.
Result<ValueIndex> TaskOf(GraphBuilder& b, ValueIndex x, ValueIndex experts, int64_t t) {
  const int64_t count = b.shape(experts)[1].times, units = b.shape(experts)[2].times;
  const std::string gate = fmt::format("gate{}.", t);
  DT_TRY(const ValueIndex logits, DenseLayer(b, x, count, gate));
  DT_TRY(const ValueIndex weights, b.Add("softmax", gate + "softmax", {logits}));
  DT_TRY(const ValueIndex row,
         b.Add("reshape", gate + "weights", {weights}, {{"shape", Ints{-1, 1, count}}}));
  DT_TRY(const ValueIndex mixed, b.Add("batch_matmul", gate + "mixed", {row, experts}));
  return b.Add("reshape", fmt::format("{}", t), {mixed}, {{"shape", Ints{-1, units}}});
}

// Parts "<node>.0", "<node>.1", …, each [B, units], are the inputs of the tasks; the node itself is
// the first.
Result<ValueIndex> Mmoe(GraphBuilder& b, std::span<const Operand> operands) {
  DT_TRY(std::vector<ValueIndex> values, b.Values(operands, true));
  DT_TRY(const ValueIndex x, b.Flat(std::move(values), ""));
  std::vector<ValueIndex> experts;
  for (int64_t i = 0; i < IntAttr(b.user().attrs, "experts", 1); ++i) {
    DT_TRY(const ValueIndex expert, Expert(b, x, i));
    experts.push_back(expert);
  }
  DT_TRY(const ValueIndex all, b.Add("stack", "experts", std::move(experts)));
  ValueIndex first = kNone;
  for (int64_t t = 0; t < IntAttr(b.user().attrs, "tasks", 1); ++t) {
    DT_TRY(const ValueIndex task, TaskOf(b, x, all, t));
    b.NamePart(fmt::format("{}", t), task);
    if (t == 0) first = task;
  }
  return first;
}

constexpr Composite kComposites[] = {{"mmoe", Mmoe}};

}  // namespace

std::span<const Composite> MmoeComposites() { return kComposites; }

}  // namespace dt::scheduler
