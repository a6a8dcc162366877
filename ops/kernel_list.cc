#include <algorithm>
#include <vector>

#include "ops/kernel_families.h"

namespace dt {
namespace {

std::vector<NamedKernel> MakeTable() {
  std::vector<NamedKernel> table;
  for (const std::span<const NamedKernel> part :
       {MatmulKernels(),  BatchMatmulKernels(), BiasKernels(),        DenseLayerKernels(),
        BinaryKernels(),  UnaryKernels(),       CastKernels(),        PreluKernels(),
        WhereKernels(),   BatchNormKernels(),   LayerNormKernels(),   L2NormalizeKernels(),
        DropoutKernels(), JoinKernels(),        ReshapeKernels(),     GatherKernels(),
        ReduceKernels(),  ReduceMaxKernels(),   GatherRowsKernels(),  BagKernels(),
        RaggedKernels(),  FmKernels(),          DotKernels(),         CrossLayerKernels(),
        OuterKernels(),   CinLayerKernels(),    HeadsKernels(),       SoftmaxKernels(),
        LossKernels(),    TableRowKernels(),    SoftmaxLossKernels(), TopKKernels(),
        StepKernels(),    DispatchKernels(),    ExpertMatmulKernels()}) {
    table.insert(table.end(), part.begin(), part.end());
  }
  std::ranges::sort(table, {}, &NamedKernel::op);
  return table;
}

}  // namespace

Kernel FindKernel(std::string_view op) {
  static const std::vector<NamedKernel> table = MakeTable();
  const auto at = std::ranges::lower_bound(table, op, {}, &NamedKernel::op);
  return at != table.end() && at->op == op ? at->kernel : nullptr;
}

}  // namespace dt
