#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

template <class T>
void AddRow(const T* __restrict x, const T* __restrict bias, T* __restrict out, size_t cols) {
  for (size_t c = 0; c < cols; ++c) out[c] = x[c] + bias[c];
}

void BiasAdd(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const T* x = DataOf<T>(context.in(0));
    const T* bias = DataOf<T>(context.in(1));
    T* out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(shape.rows, RowGrain(shape.cols), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        AddRow(x + r * shape.cols, bias, out + r * shape.cols, shape.cols);
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {{"bias_add", BiasAdd}};

}  // namespace

std::span<const NamedKernel> BiasKernels() { return kKernels; }

}  // namespace dt
