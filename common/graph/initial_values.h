// The first values of dense parameters and of their optimizer state. Every worker computes them by
// itself: they are a pure function of the job's seed and the parameter's name.
#pragma once

#include <cstdint>
#include <vector>

#include "common/graph/graph.h"

namespace dt {

// As many floats as the value has elements. REQUIRES: the value's shape holds constants only.
std::vector<float> InitialValues(uint64_t seed, const Value& value, const ParameterSpec& spec);

}  // namespace dt
