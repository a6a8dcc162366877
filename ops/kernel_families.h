// Declares the kernels that each CPU source adds to FindKernel's table.
#pragma once

#include <span>
#include <string_view>

#include "ops/families.h"
#include "ops/kernel.h"

namespace dt {

struct NamedKernel {
  std::string_view op;
  Kernel kernel;
};

#define DT_DECLARE_KERNELS(Family) std::span<const NamedKernel> Family##Kernels();
DT_OP_FAMILIES(DT_DECLARE_KERNELS)
#undef DT_DECLARE_KERNELS

}  // namespace dt
