// Composites: entries of a job file that stand for several operators and their parameters.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "scheduler/composites/builder.h"

namespace dt::scheduler {

struct Composite {
  std::string_view name;
  // Adds the operators for builder.user(), whose attributes are checked, and returns the result.
  Result<ValueIndex> (*expand)(GraphBuilder& builder, std::span<const Operand> operands);
  size_t inputs_min = 1;
};

// One list for each file that defines composites; composites.cc joins them.
std::span<const Composite> ActivationComposites();
std::span<const Composite> DenseComposites();
std::span<const Composite> LookupComposites();
std::span<const Composite> AttentionComposites();
std::span<const Composite> CinComposites();
std::span<const Composite> SequenceComposites();
std::span<const Composite> MmoeComposites();
std::span<const Composite> MoeComposites();
std::vector<const Composite*> AllComposites();
// nullptr if there is no such composite.
const Composite* FindComposite(std::string_view name);

// The initialisation given by `init` and `init_value` of the current node, or the fallback.
InitSpec InitOf(const GraphBuilder& builder, InitSpec fallback);
// x · W[n, units] (+ b[units]), with parameters "<node>.<prefix>weight" and "<node>.<prefix>bias".
// REQUIRES: x is [B, n].
Result<ValueIndex> DenseLayer(GraphBuilder& builder, ValueIndex x, int64_t units,
                              std::string_view prefix);
// One layer of `dense`, `mlp` or an expert: linear, batch normalisation, activation and dropout, as
// the attributes of the current node say.
Result<ValueIndex> FullLayer(GraphBuilder& builder, ValueIndex x, int64_t units,
                             std::string_view prefix);
struct NormOptions {
  double momentum = 0.1;
  double epsilon = 1e-5;
  bool affine = true;  // Trains scale and shift.
};
// Batch normalisation of x, with parameters "<node>.<prefix>gamma", "<node>.<prefix>beta" and the
// running mean and variance.
Result<ValueIndex> NormLayer(GraphBuilder& builder, ValueIndex x, const NormOptions& options,
                             std::string_view prefix);
// One of Activations(), with the parameter "<node>.<prefix>alpha" if it has one.
Result<ValueIndex> Activate(GraphBuilder& builder, ValueIndex x, const std::string& activation,
                            std::string_view prefix);
// a + b + …, in order.
Result<ValueIndex> SumOf(GraphBuilder& builder, std::span<const ValueIndex> values);

}  // namespace dt::scheduler
