// A plan as bytes: the scheduler encodes it once, every worker decodes it.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "common/base/status.h"
#include "common/plan/plan.h"

namespace dt {

// Equal plans give equal bytes.
std::string Encode(const Plan& plan);

// Error: Malformed, for bytes that are no plan and for plans that CheckPlan refuses. Any bytes are
// safe: all are checked before use, and a plan takes at most a few times the memory of its bytes.
Result<Plan> DecodePlan(std::span<const std::byte> bytes, TraitsLookup traits_of);

}  // namespace dt
