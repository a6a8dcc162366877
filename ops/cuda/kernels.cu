#include <algorithm>
#include <string_view>
#include <vector>

#include "ops/cuda/kernels.cuh"

namespace dt {
namespace {

std::vector<CudaKernel> MakeTable() {
  std::vector<CudaKernel> table;
  const auto add = [&table](const CudaKernelList& list) {
    table.insert(table.end(), list.kernels, list.kernels + list.count);
  };
#define DT_ADD_KERNELS(File) add(File##CudaKernels());
  DT_CUDA_FILES(DT_ADD_KERNELS)
#undef DT_ADD_KERNELS
  std::sort(table.begin(), table.end(), [](const CudaKernel& a, const CudaKernel& b) {
    return std::string_view(a.op) < std::string_view(b.op);
  });
  return table;
}

}  // namespace

const CudaKernel* FindCudaKernel(const char* op) {
  static const std::vector<CudaKernel> table = MakeTable();
  const std::string_view name = op;
  const auto at =
      std::lower_bound(table.begin(), table.end(), name,
                       [](const CudaKernel& k, std::string_view n) { return k.op < n; });
  return at != table.end() && at->op == name ? &*at : nullptr;
}

}  // namespace dt
