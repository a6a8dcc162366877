#include <cmath>

#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

double EpsilonOf(const KernelContext& context) {
  return FloatAttr(context.node.attrs, "epsilon", 1e-12);
}

void L2Normalize(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const T* xs = DataOf<T>(context.in(0));
    T* out = DataOf<T>(context.out(0));
    const T least = static_cast<T>(EpsilonOf(context));
    context.pool.ParallelFor(shape.rows, RowGrain(shape.cols), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        const T* __restrict x = xs + r * shape.cols;
        T* __restrict y = out + r * shape.cols;
        const T length = std::sqrt(DotOf(x, x, shape.cols));
        const T factor = T(1) / (length < least ? least : length);
        for (size_t c = 0; c < shape.cols; ++c) y[c] = x[c] * factor;
      }
    });
  });
}

// dx = (dy - y (y · dy)) / |x|, or dy / epsilon if the row was divided by epsilon.
void L2NormalizeGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const T *xs = DataOf<T>(context.in(0)), *dys = DataOf<T>(context.in(1));
    T* out = DataOf<T>(context.out(0));
    const T least = static_cast<T>(EpsilonOf(context));
    context.pool.ParallelFor(shape.rows, RowGrain(shape.cols), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        const T* __restrict x = xs + r * shape.cols;
        const T* __restrict dy = dys + r * shape.cols;
        T* __restrict dx = out + r * shape.cols;
        const T length = std::sqrt(DotOf(x, x, shape.cols));
        const bool is_short = length < least;
        const T factor = T(1) / (is_short ? least : length);
        const T along = is_short ? T(0) : DotOf(x, dy, shape.cols) * factor * factor;
        for (size_t c = 0; c < shape.cols; ++c) dx[c] = factor * (dy[c] - x[c] * along);
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"l2_normalize", L2Normalize},
    {"l2_normalize_grad", L2NormalizeGrad},
};

}  // namespace

std::span<const NamedKernel> L2NormalizeKernels() { return kKernels; }

}  // namespace dt
