#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

// The input as [outer, count, inner]; the middle dimension is reduced.
struct Middle {
  size_t outer = 1, count = 1, inner = 1;

  explicit Middle(const KernelContext& context) {
    const Shape& shape = context.in(0).shape;
    const int64_t written = IntAttr(context.node.attrs, "axis", -1);
    const auto axis = static_cast<size_t>(written < 0 ? written + std::ssize(shape) : written);
    for (size_t i = 0; i < shape.size(); ++i) {
      (i < axis ? outer : i == axis ? count : inner) *= static_cast<size_t>(shape[i]);
    }
  }
};

// NaN counts as larger than every number, so that it is not hidden.
template <class T>
bool IsLarger(T x, T than) {
  return x > than || x != x;
}

void ReduceMax(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const Middle shape(context);
    const size_t block = shape.count * shape.inner;
    const T* const in = DataOf<T>(context.in(0));
    T* const out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(shape.outer, RowGrain(block), [&](size_t begin, size_t end) {
      for (size_t o = begin; o < end; ++o) {
        const T* __restrict x = in + o * block;
        T* __restrict y = out + o * shape.inner;
        std::fill_n(y, shape.inner, -std::numeric_limits<T>::infinity());
        for (size_t k = 0; k < shape.count; ++k, x += shape.inner) {
          for (size_t i = 0; i < shape.inner; ++i) y[i] = IsLarger(x[i], y[i]) ? x[i] : y[i];
        }
      }
    });
  });
}

template <class T>
size_t FirstLargest(const T* x, const Middle& shape) {
  size_t largest = 0;
  for (size_t k = 1; k < shape.count; ++k) {
    if (x[k * shape.inner] > x[largest * shape.inner]) largest = k;
  }
  return largest;
}

void ReduceMaxGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const Middle shape(context);
    const size_t block = shape.count * shape.inner;
    const T *const in = DataOf<T>(context.in(0)), *const grads = DataOf<T>(context.in(1));
    T* const out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(shape.outer, RowGrain(block), [&](size_t begin, size_t end) {
      std::fill_n(out + begin * block, (end - begin) * block, T(0));
      for (size_t o = begin; o < end; ++o) {
        for (size_t i = 0; i < shape.inner; ++i) {
          const size_t at = o * block + i;
          out[at + FirstLargest(in + at, shape) * shape.inner] = grads[o * shape.inner + i];
        }
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"reduce_max", ReduceMax},
    {"reduce_max_grad", ReduceMaxGrad},
};

}  // namespace

std::span<const NamedKernel> ReduceMaxKernels() { return kKernels; }

}  // namespace dt
