#include <algorithm>
#include <vector>

#include "ops/kernel_families.h"

namespace dt {
namespace {

std::vector<NamedKernel> MakeTable() {
  std::vector<NamedKernel> table;
#define DT_ADD_KERNELS(Family) \
  for (const NamedKernel& kernel : Family##Kernels()) table.push_back(kernel);
  DT_OP_FAMILIES(DT_ADD_KERNELS)
#undef DT_ADD_KERNELS
  std::ranges::sort(table, {}, &NamedKernel::op);
  return table;
}

}  // namespace

Kernel FindKernel(std::string_view op) {
  static const std::vector<NamedKernel> table = MakeTable();
  const auto at = std::ranges::lower_bound(table, op, {}, &NamedKernel::op);
  return at != table.end() && at->op == op ? at->kernel : nullptr;
}

}  // namespace dt
