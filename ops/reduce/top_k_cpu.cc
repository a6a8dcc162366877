#include <limits>

#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

template <class T>
T KeyOf(T x) {
  return x == x ? x : -std::numeric_limits<T>::infinity();
}

// Finds the positions of the found.size() largest elements of x[0 .. n), by insertion.
template <class T>
void FindLargest(const T* x, uint32_t n, std::span<uint32_t> found) {
  size_t count = 0;
  for (uint32_t j = 0; j < n; ++j) {
    const T key = KeyOf(x[j]);
    if (count == found.size() && !(key > KeyOf(x[found.back()]))) continue;
    size_t at = count < found.size() ? count++ : count - 1;
    for (; at > 0 && key > KeyOf(x[found[at - 1]]); --at) found[at] = found[at - 1];
    found[at] = j;
  }
}

void TopK(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const size_t k = AsMatrix(context.out(0)).cols;
    const T* const in = DataOf<T>(context.in(0));
    T* const out = DataOf<T>(context.out(0));
    uint32_t* const positions = DataOf<uint32_t>(context.out(1));
    context.pool.ParallelFor(shape.rows, RowGrain(shape.cols * k), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        const T* const x = in + r * shape.cols;
        const std::span<uint32_t> found(positions + r * k, k);
        FindLargest(x, static_cast<uint32_t>(shape.cols), found);
        for (size_t i = 0; i < k; ++i) out[r * k + i] = x[found[i]];
      }
    });
  });
}

void TopKGrad(KernelContext& context) {
  OnFloat(context.in(1).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.out(0));
    const size_t k = AsMatrix(context.in(1)).cols;
    const uint32_t* const positions = DataOf<uint32_t>(context.in(0));
    const T* const dy = DataOf<T>(context.in(1));
    T* const dx = DataOf<T>(context.out(0));
    context.pool.ParallelFor(shape.rows, RowGrain(shape.cols), [&](size_t begin, size_t end) {
      std::fill_n(dx + begin * shape.cols, (end - begin) * shape.cols, T(0));
      for (size_t r = begin; r < end; ++r) {
        for (size_t i = r * k; i < (r + 1) * k; ++i) dx[r * shape.cols + positions[i]] = dy[i];
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"top_k", TopK},
    {"top_k_grad", TopKGrad},
};

}  // namespace

std::span<const NamedKernel> TopKKernels() { return kKernels; }

}  // namespace dt
