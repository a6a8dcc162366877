// The lists that make up FindKernel's table: one for each file of CPU kernels.
#pragma once

#include <span>
#include <string_view>

#include "ops/kernel.h"

namespace dt {

struct NamedKernel {
  std::string_view op;
  Kernel kernel;
};

std::span<const NamedKernel> MatmulKernels();
std::span<const NamedKernel> BatchMatmulKernels();
std::span<const NamedKernel> BiasKernels();
std::span<const NamedKernel> DenseLayerKernels();
std::span<const NamedKernel> BinaryKernels();
std::span<const NamedKernel> UnaryKernels();
std::span<const NamedKernel> CastKernels();
std::span<const NamedKernel> PreluKernels();
std::span<const NamedKernel> WhereKernels();
std::span<const NamedKernel> BatchNormKernels();
std::span<const NamedKernel> LayerNormKernels();
std::span<const NamedKernel> L2NormalizeKernels();
std::span<const NamedKernel> DropoutKernels();
std::span<const NamedKernel> JoinKernels();
std::span<const NamedKernel> ReshapeKernels();
std::span<const NamedKernel> GatherKernels();
std::span<const NamedKernel> ReduceKernels();
std::span<const NamedKernel> ReduceMaxKernels();
std::span<const NamedKernel> TopKKernels();
std::span<const NamedKernel> GatherRowsKernels();
std::span<const NamedKernel> BagKernels();
std::span<const NamedKernel> RaggedKernels();
std::span<const NamedKernel> FmKernels();
std::span<const NamedKernel> DotKernels();
std::span<const NamedKernel> CrossLayerKernels();
std::span<const NamedKernel> OuterKernels();
std::span<const NamedKernel> CinLayerKernels();
std::span<const NamedKernel> HeadsKernels();
std::span<const NamedKernel> SoftmaxKernels();
std::span<const NamedKernel> DispatchKernels();
std::span<const NamedKernel> ExpertMatmulKernels();
std::span<const NamedKernel> LossKernels();
std::span<const NamedKernel> SoftmaxLossKernels();
std::span<const NamedKernel> StepKernels();
std::span<const NamedKernel> TableRowKernels();

}  // namespace dt
