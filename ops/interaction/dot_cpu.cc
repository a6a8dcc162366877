#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

struct DotShape {
  size_t samples, fields, dim, pairs;
  explicit DotShape(const TensorView& x)
      : samples(static_cast<size_t>(x.shape[0])),
        fields(static_cast<size_t>(x.shape[1])),
        dim(static_cast<size_t>(x.shape[2])),
        pairs(fields * (fields - 1) / 2) {}
};

void Dot(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const DotShape shape(context.in(0));
    const T* x = DataOf<T>(context.in(0));
    T* out = DataOf<T>(context.out(0));
    const size_t grain = RowGrain(shape.fields * shape.dim);
    context.pool.ParallelFor(shape.samples, grain, [&](size_t begin, size_t end) {
      T* to = out + begin * shape.pairs;
      for (size_t b = begin; b < end; ++b) {
        const T* sample = x + b * shape.fields * shape.dim;
        for (size_t i = 1; i < shape.fields; ++i) {
          const T* left = sample + i * shape.dim;
          for (size_t j = 0; j < i; ++j) *to++ = DotOf(left, sample + j * shape.dim, shape.dim);
        }
      }
    });
  });
}

template <class T>
void OneGrad(const T* x, const T* dy, T* dx, const DotShape& shape) {
  std::fill_n(dx, shape.fields * shape.dim, T(0));
  for (size_t i = 1; i < shape.fields; ++i) {
    for (size_t j = 0; j < i; ++j, ++dy) {
      AddScaled(*dy, x + j * shape.dim, dx + i * shape.dim, shape.dim);
      AddScaled(*dy, x + i * shape.dim, dx + j * shape.dim, shape.dim);
    }
  }
}

void DotGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const DotShape shape(context.in(0));
    const T* x = DataOf<T>(context.in(0));
    const T* dy = DataOf<T>(context.in(1));
    T* dx = DataOf<T>(context.out(0));
    const size_t stride = shape.fields * shape.dim;
    context.pool.ParallelFor(shape.samples, RowGrain(stride), [&](size_t begin, size_t end) {
      for (size_t b = begin; b < end; ++b) {
        OneGrad(x + b * stride, dy + b * shape.pairs, dx + b * stride, shape);
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"dot", Dot},
    {"dot_grad", DotGrad},
};

}  // namespace

std::span<const NamedKernel> DotKernels() { return kKernels; }

}  // namespace dt
