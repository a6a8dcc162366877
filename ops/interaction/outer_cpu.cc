#include "ops/interaction/outer_rows.h"
#include "ops/kernel_families.h"

namespace dt {
namespace {

void Outer(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape left = AsMatrix(context.in(0)), right = AsMatrix(context.in(1));
    const T *x = DataOf<T>(context.in(0)), *y = DataOf<T>(context.in(1));
    T* z = DataOf<T>(context.out(0));
    const OuterRows rows{left.cols, right.cols};
    context.pool.ParallelFor(left.rows, RowGrain(rows.p * rows.q), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        rows.Multiply(x + r * rows.p, y + r * rows.q, z + r * rows.p * rows.q);
      }
    });
  });
}

void OuterGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape left = AsMatrix(context.in(0)), right = AsMatrix(context.in(1));
    const T *x = DataOf<T>(context.in(0)), *y = DataOf<T>(context.in(1));
    const T* dz = DataOf<T>(context.in(2));
    T *dx = DataOf<T>(context.out(0)), *dy = DataOf<T>(context.out(1));
    const OuterRows rows{left.cols, right.cols};
    context.pool.ParallelFor(left.rows, RowGrain(rows.p * rows.q), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        const size_t at_x = r * rows.p, at_y = r * rows.q;
        rows.Gradient(x + at_x, y + at_y, dz + at_x * rows.q, dx + at_x, dy + at_y);
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {{"outer", Outer}, {"outer_grad", OuterGrad}};

}  // namespace

std::span<const NamedKernel> OuterKernels() { return kKernels; }

}  // namespace dt
