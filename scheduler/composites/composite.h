// Composites: words of a job file that stand for several operators and their parameters.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "scheduler/composites/builder.h"

namespace dt::scheduler {

struct Composite {
  std::string_view name;
  // Adds the operators of builder.user(), whose attributes are checked; gives their result.
  Result<ValueIndex> (*expand)(GraphBuilder& builder, std::span<const Operand> operands);
  size_t inputs_min = 1;
};

// One list for each file that defines some; composites.cc puts them together.
std::span<const Composite> ActivationComposites();
std::span<const Composite> DenseComposites();
std::span<const Composite> LookupComposites();
std::span<const Composite> AttentionComposites();
std::span<const Composite> CinComposites();
std::span<const Composite> SequenceComposites();
std::span<const Composite> MmoeComposites();
std::span<const Composite> MoeComposites();
std::vector<const Composite*> AllComposites();
// nullptr if there is none.
const Composite* FindComposite(std::string_view name);

// `init` and `init_value` of the current node, or the fallback.
InitSpec InitOf(const GraphBuilder& builder, InitSpec fallback);
// x · W[n, units] (+ b[units]). REQUIRES: x is [B, n]. Parameters "<node>.<prefix>weight" and so
// on.
Result<ValueIndex> DenseLayer(GraphBuilder& builder, ValueIndex x, int64_t units,
                              std::string_view prefix);
// Linear, batch normalisation, activation, dropout, by the attributes of the current node: what a
// layer of `dense`, `mlp` and an expert is.
Result<ValueIndex> FullLayer(GraphBuilder& builder, ValueIndex x, int64_t units,
                             std::string_view prefix);
struct NormOptions {
  double momentum = 0.1;
  double epsilon = 1e-5;
  bool affine = true;  // With trained scale and shift.
};
// Batch normalisation of x. Parameters "<node>.<prefix>gamma" and so on.
Result<ValueIndex> NormLayer(GraphBuilder& builder, ValueIndex x, const NormOptions& options,
                             std::string_view prefix);
// One of Activations(), with the parameter "<node>.<prefix>alpha" if it has one.
Result<ValueIndex> Activate(GraphBuilder& builder, ValueIndex x, const std::string& activation,
                            std::string_view prefix);
// a + b + …, in order.
Result<ValueIndex> SumOf(GraphBuilder& builder, std::span<const ValueIndex> values);

}  // namespace dt::scheduler
