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

// Place of the pair of two different fields in the output.
size_t PairAt(size_t i, size_t j) { return i > j ? i * (i - 1) / 2 + j : j * (j - 1) / 2 + i; }

// dx of one field: Σ over the other fields j of dy(i, j) x_j, kColumns columns at a time in
// registers.
constexpr size_t kColumns = 16;
template <class T>
void FieldGrad(const T* __restrict x, const T* __restrict dy, T* __restrict dx, size_t i,
               const DotShape& shape) {
  size_t d = 0;
  for (; d + kColumns <= shape.dim; d += kColumns) {
    T sum[kColumns] = {};
    for (size_t j = 0; j < shape.fields; ++j) {
      const T pair = i == j ? T(0) : dy[PairAt(i, j)];
      const T* row = x + j * shape.dim + d;
      for (size_t k = 0; k < kColumns; ++k) sum[k] += pair * row[k];
    }
    for (size_t k = 0; k < kColumns; ++k) dx[d + k] = sum[k];
  }
  for (; d < shape.dim; ++d) {
    T sum = 0;
    for (size_t j = 0; j < shape.fields; ++j) {
      if (i != j) sum += dy[PairAt(i, j)] * x[j * shape.dim + d];
    }
    dx[d] = sum;
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
        for (size_t i = 0; i < shape.fields; ++i) {
          const size_t at = b * stride + i * shape.dim;
          FieldGrad(x + b * stride, dy + b * shape.pairs, dx + at, i, shape);
        }
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
