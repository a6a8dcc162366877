#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

// Number of columns summed at a time; their sums stay in registers or the first-level cache.
constexpr size_t kColumns = 64;

struct FmShape {
  size_t samples, fields, dim;
  explicit FmShape(const TensorView& x)
      : samples(static_cast<size_t>(x.shape[0])),
        fields(static_cast<size_t>(x.shape[1])),
        dim(static_cast<size_t>(x.shape[2])) {}
};

// ½ Σ_d ((Σ_f x)² - Σ_f x²) over columns [0, count) of x.
template <class T>
T PairsOf(const T* __restrict x, size_t fields, size_t dim, size_t count) {
  T sum[kColumns] = {}, squares[kColumns] = {};
  for (size_t f = 0; f < fields; ++f) {
    const T* row = x + f * dim;
    for (size_t d = 0; d < count; ++d) {
      sum[d] += row[d];
      squares[d] += row[d] * row[d];
    }
  }
  T total = 0;
  for (size_t d = 0; d < count; ++d) total += sum[d] * sum[d] - squares[d];
  return T(0.5) * total;
}

void Fm(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const FmShape shape(context.in(0));
    const T* x = DataOf<T>(context.in(0));
    T* out = DataOf<T>(context.out(0));
    const size_t stride = shape.fields * shape.dim;
    context.pool.ParallelFor(shape.samples, RowGrain(stride), [&](size_t begin, size_t end) {
      for (size_t b = begin; b < end; ++b) {
        T total = 0;
        for (size_t d = 0; d < shape.dim; d += kColumns) {
          const size_t count = std::min(kColumns, shape.dim - d);
          total += PairsOf(x + b * stride + d, shape.fields, shape.dim, count);
        }
        out[b] = total;
      }
    });
  });
}

// dx = dy (Σ_f x - x)
template <class T>
void OneGrad(const T* __restrict x, T dy, T* __restrict dx, const FmShape& shape, size_t count) {
  T sum[kColumns] = {};
  for (size_t f = 0; f < shape.fields; ++f) AddTo(x + f * shape.dim, sum, count);
  for (size_t f = 0; f < shape.fields; ++f) {
    const T* from = x + f * shape.dim;
    T* to = dx + f * shape.dim;
    for (size_t d = 0; d < count; ++d) to[d] = dy * (sum[d] - from[d]);
  }
}

void FmGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const FmShape shape(context.in(0));
    const T* x = DataOf<T>(context.in(0));
    const T* dy = DataOf<T>(context.in(1));
    T* dx = DataOf<T>(context.out(0));
    const size_t stride = shape.fields * shape.dim;
    context.pool.ParallelFor(shape.samples, RowGrain(stride), [&](size_t begin, size_t end) {
      for (size_t b = begin; b < end; ++b) {
        for (size_t d = 0; d < shape.dim; d += kColumns) {
          const size_t at = b * stride + d;
          OneGrad(x + at, dy[b], dx + at, shape, std::min(kColumns, shape.dim - d));
        }
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"fm", Fm},
    {"fm_grad", FmGrad},
};

}  // namespace

std::span<const NamedKernel> FmKernels() { return kKernels; }

}  // namespace dt
