// The initial values of dense parameters and of their optimizer state. Every worker computes them
// itself, as a pure function of the job's seed and the parameter's name.
#pragma once

#include <cstdint>
#include <vector>

#include "common/graph/graph.h"

namespace dt {

// Returns as many floats as the value has elements; if it is a part of the parameter, those of the
// part. REQUIRES: all dimensions of the value are constants.
std::vector<float> InitialValues(uint64_t seed, const Value& value, const ParameterSpec& spec);

}  // namespace dt
