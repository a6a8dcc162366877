// The lists that make up AllOps: one for each file of specifications.
#pragma once

#include <span>

#include "ops/op_spec.h"

namespace dt {

std::span<const OpSpec> MatmulSpecs();
std::span<const OpSpec> BatchMatmulSpecs();
std::span<const OpSpec> BiasSpecs();
std::span<const OpSpec> DenseLayerSpecs();
std::span<const OpSpec> BinarySpecs();
std::span<const OpSpec> UnarySpecs();
std::span<const OpSpec> CastSpecs();
std::span<const OpSpec> PreluSpecs();
std::span<const OpSpec> WhereSpecs();
std::span<const OpSpec> BatchNormSpecs();
std::span<const OpSpec> LayerNormSpecs();
std::span<const OpSpec> L2NormalizeSpecs();
std::span<const OpSpec> DropoutSpecs();
std::span<const OpSpec> JoinSpecs();
std::span<const OpSpec> ReshapeSpecs();
std::span<const OpSpec> GatherSpecs();
std::span<const OpSpec> ReduceSpecs();
std::span<const OpSpec> ReduceMaxSpecs();
std::span<const OpSpec> TopKSpecs();
std::span<const OpSpec> GatherRowsSpecs();
std::span<const OpSpec> BagSpecs();
std::span<const OpSpec> RaggedSpecs();
std::span<const OpSpec> FmSpecs();
std::span<const OpSpec> DotSpecs();
std::span<const OpSpec> CrossLayerSpecs();
std::span<const OpSpec> OuterSpecs();
std::span<const OpSpec> CinLayerSpecs();
std::span<const OpSpec> HeadsSpecs();
std::span<const OpSpec> SoftmaxSpecs();
std::span<const OpSpec> DispatchSpecs();
std::span<const OpSpec> ExpertMatmulSpecs();
std::span<const OpSpec> LossSpecs();
std::span<const OpSpec> SoftmaxLossSpecs();
std::span<const OpSpec> StepSpecs();
std::span<const OpSpec> TableRowSpecs();
std::span<const OpSpec> CommunicationSpecs();

}  // namespace dt
