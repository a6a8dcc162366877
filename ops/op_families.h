// Declares the specifications that each source adds to AllOps.
#pragma once

#include <span>

#include "ops/families.h"
#include "ops/op_spec.h"

namespace dt {

#define DT_DECLARE_SPECS(Family) std::span<const OpSpec> Family##Specs();
DT_OP_FAMILIES(DT_DECLARE_SPECS)
DT_EXECUTOR_FAMILIES(DT_DECLARE_SPECS)
#undef DT_DECLARE_SPECS

}  // namespace dt
