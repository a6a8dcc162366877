// A random optimizer with random options, for property tests.
#pragma once

#include <algorithm>

#include "common/specs/optimizer.h"

namespace dt::test {

// `below(n)` returns a random whole number from 0 to n - 1. Options are within their ranges and at
// most 1, so that no value overflows. Half of those that have a dense scope get it.
template <class Below>
OptimizerSpec DrawOptimizer(Below below) {
  OptimizerSpec spec;
  const uint32_t kinds = static_cast<uint32_t>(std::size(kOptimizers));
  spec.kind = kOptimizers[below(kinds)].kind;
  for (const OptimizerNumber& number : kOptimizerNumbers) {
    const double share = (below(16) + 1) / 17.0;
    const double range = std::min(number.max, 1.0) - number.min;
    spec.*number.value = static_cast<float>(number.min + share * range);
  }
  if (InfoOf(spec.kind).has_dense_scope && below(2) == 1) {
    spec.scope = UpdateScope::kDense;
    spec.beta2 = std::max(spec.beta1, spec.beta2);
    spec.l2 = below(2) == 1 ? 0.05f : 0.0f;
  }
  return spec;
}

}  // namespace dt::test
