#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

void CrossLayer(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const T* x0s = DataOf<T>(context.in(0));
    const T* xs = DataOf<T>(context.in(1));
    const T* w = DataOf<T>(context.in(2));
    const T* bias = DataOf<T>(context.in(3));
    T* out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(shape.rows, RowGrain(shape.cols), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        const T* x0 = x0s + r * shape.cols;
        const T* x = xs + r * shape.cols;
        T* __restrict to = out + r * shape.cols;
        const T s = DotOf(x, w, shape.cols);
        for (size_t d = 0; d < shape.cols; ++d) to[d] = x0[d] * s + bias[d] + x[d];
      }
    });
  });
}

// s = x·w, ds = dy·x0: dx0 = dy s, dx = dy + ds w, dw = Σ ds x, db = Σ dy.
template <class T>
struct CrossGrad {
  size_t dim;
  const T *x0, *x, *w, *dy;
  T *dx0, *dx;

  void Row(size_t r, T* dw, T* db) const {
    const size_t at = r * dim;
    const T s = DotOf(x + at, w, dim), ds = DotOf(dy + at, x0 + at, dim);
    const T* __restrict from = dy + at;
    T* __restrict to0 = dx0 + at;
    T* __restrict to = dx + at;
    for (size_t d = 0; d < dim; ++d) {
      to0[d] = from[d] * s;
      to[d] = from[d] + ds * w[d];
    }
    AddScaled(ds, x + at, dw, dim);
    AddTo(from, db, dim);
  }
};

void CrossLayerGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const CrossGrad<T> grad{.dim = shape.cols,
                            .x0 = DataOf<T>(context.in(0)),
                            .x = DataOf<T>(context.in(1)),
                            .w = DataOf<T>(context.in(2)),
                            .dy = DataOf<T>(context.in(3)),
                            .dx0 = DataOf<T>(context.out(0)),
                            .dx = DataOf<T>(context.out(1))};
    const auto sums = SumOverRows<T>(context, shape.rows, 2 * shape.cols,
                                     [&](size_t begin, size_t end, T* partial) {
                                       for (size_t r = begin; r < end; ++r)
                                         grad.Row(r, partial, partial + shape.cols);
                                     });
    std::ranges::copy(sums.first(shape.cols), DataOf<T>(context.out(2)));
    std::ranges::copy(sums.subspan(shape.cols), DataOf<T>(context.out(3)));
  });
}

constexpr NamedKernel kKernels[] = {
    {"cross_layer", CrossLayer},
    {"cross_layer_grad", CrossLayerGrad},
};

}  // namespace

std::span<const NamedKernel> CrossLayerKernels() { return kKernels; }

}  // namespace dt
