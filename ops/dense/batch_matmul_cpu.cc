#include <cstring>
#include <immintrin.h>
#include <type_traits>

#include "ops/gemm/gemm_cpu.h"
#include "ops/kernel_families.h"
#include "ops/kernel_util.h"
#include "ops/vector_lanes.h"

namespace dt {
namespace {

// Small products, such as those of attention, are computed here, because a library call costs more
// than their arithmetic. The right operand is copied to rows of whole vectors that fit into a
// thread's first-level cache; the result is computed in blocks of kRows rows and one or two
// vectors of kLanes, which stay in registers.
constexpr size_t kRows = 4;
constexpr size_t kPacked = 6144;       // Most elements of a packed right operand.
constexpr size_t kSmall = 256 * 1024;  // Most multiplications of a small product.

size_t PaddedCols(size_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

bool IsSmall(const GemmShape& shape) {
  return shape.k * PaddedCols(shape.n) <= kPacked && shape.m * shape.n * shape.k <= kSmall;
}

// Packs op(B), with its rows padded with zeros.
template <class T>
void Pack(const GemmShape& shape, const T* __restrict b, T* __restrict packed) {
  const size_t width = PaddedCols(shape.n);
  for (size_t k = 0; k < shape.k; ++k) {
    T* const row = packed + k * width;
    if (!shape.transpose_b) std::copy_n(b + k * shape.n, shape.n, row);
    std::fill(row + shape.n, row + width, T(0));
  }
  for (size_t j = 0; shape.transpose_b && j < shape.n; ++j) {
    for (size_t k = 0; k < shape.k; ++k) packed[k * width + j] = b[j * shape.k + k];
  }
}

// kLanes elements in explicit vector registers, which the compiler does not find by itself here.
struct Floats {
  __m256 lanes = _mm256_setzero_ps();

  void AddProduct(float a, const float* b) {
    lanes = _mm256_fmadd_ps(_mm256_set1_ps(a), _mm256_loadu_ps(b), lanes);
  }
  void Store(float* to) const { _mm256_storeu_ps(to, lanes); }
};
struct Doubles {
  __m256d low = _mm256_setzero_pd(), high = _mm256_setzero_pd();

  void AddProduct(double a, const double* b) {
    low = _mm256_fmadd_pd(_mm256_set1_pd(a), _mm256_loadu_pd(b), low);
    high = _mm256_fmadd_pd(_mm256_set1_pd(a), _mm256_loadu_pd(b + 4), high);
  }
  void Store(double* to) const {
    _mm256_storeu_pd(to, low);
    _mm256_storeu_pd(to + 4, high);
  }
};
template <class T>
using Vector = std::conditional_t<std::is_same_v<T, float>, Floats, Doubles>;

// Stores the first n < kLanes elements. A call of memcpy would cost as much as the products.
template <class T>
void StoreFirst(const Vector<T>& vector, size_t n, T* to) {
  T all[kLanes];
  vector.Store(all);
  const T* from = all;
  if ((n & 4) != 0) std::memcpy(to, from, 4 * sizeof(T)), to += 4, from += 4;
  if ((n & 2) != 0) std::memcpy(to, from, 2 * sizeof(T)), to += 2, from += 2;
  if ((n & 1) != 0) *to = *from;
}

// Rows of op(A), at strides `row` and `col`, and columns of the packed operand.
template <class T>
struct Block {
  const T* a;
  size_t row, col, k;
  const T* b;
  size_t width;
};
// Stores the first `cols` columns; `cols` is more than (vectors - 1) * kLanes.
template <size_t rows, size_t vectors, class T>
void Multiply(const Block<T>& in, T* c, size_t stride, size_t cols) {
  Vector<T> sum[rows][vectors];
  for (size_t k = 0; k < in.k; ++k) {
    const T* const b = in.b + k * in.width;
#pragma GCC unroll 4
    for (size_t r = 0; r < rows; ++r) {
      const T a = in.a[r * in.row + k * in.col];
#pragma GCC unroll 2
      for (size_t v = 0; v < vectors; ++v) sum[r][v].AddProduct(a, b + v * kLanes);
    }
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (size_t v = 0; v < vectors; ++v) {
      T* const to = c + r * stride + v * kLanes;
      const size_t left = cols - v * kLanes;
      if (left >= kLanes) sum[r][v].Store(to);
      if (left < kLanes) StoreFirst<T>(sum[r][v], left, to);
    }
  }
}
template <size_t vectors, class T>
void MultiplyRows(size_t rows, const Block<T>& in, T* c, size_t stride, size_t cols) {
  if (rows == kRows) return Multiply<kRows, vectors>(in, c, stride, cols);
  if (rows == 2) return Multiply<2, vectors>(in, c, stride, cols);
  Multiply<1, vectors>(in, c, stride, cols);
}

template <class T>
void SmallProduct(const GemmShape& shape, const T* a, const T* b, T* c) {
  alignas(64) T packed[kPacked];
  Pack(shape, b, packed);
  const size_t width = PaddedCols(shape.n);
  Block<T> in{.a = a,
              .row = shape.transpose_a ? 1 : shape.k,
              .col = shape.transpose_a ? shape.m : 1,
              .k = shape.k,
              .b = packed,
              .width = width};
  for (size_t i = 0; i < shape.m;) {
    const size_t left = shape.m - i;
    const size_t rows = left >= kRows ? kRows : (left >= 2 ? 2 : 1);
    in.a = a + i * in.row;
    for (size_t j = 0; j < shape.n; j += 2 * kLanes) {
      in.b = packed + j;
      T* const to = c + i * shape.n + j;
      const size_t cols = std::min(2 * kLanes, shape.n - j);
      if (cols > kLanes) MultiplyRows<2>(rows, in, to, shape.n, cols);
      if (cols <= kLanes) MultiplyRows<1>(rows, in, to, shape.n, cols);
    }
    i += rows;
  }
}

GemmShape ShapeOf(const KernelContext& context) {
  const Attrs& attrs = context.node.attrs;
  GemmShape shape;
  shape.transpose_a = BoolAttr(attrs, "transpose_a", false);
  shape.transpose_b = BoolAttr(attrs, "transpose_b", false);
  const Shape &a = context.in(0).shape, &out = context.out(0).shape;
  shape.m = static_cast<size_t>(out[out.size() - 2]);
  shape.n = static_cast<size_t>(out.back());
  shape.k = static_cast<size_t>(shape.transpose_a ? a[a.size() - 2] : a.back());
  return shape;
}

void BatchMatmul(KernelContext& context) {
  const GemmShape shape = ShapeOf(context);
  const size_t a_size = shape.m * shape.k, b_size = shape.k * shape.n, c_size = shape.m * shape.n;
  if (context.out(0).size() == 0) return;
  const size_t count = static_cast<size_t>(context.out(0).size()) / c_size;
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const T *a = DataOf<T>(context.in(0)), *b = DataOf<T>(context.in(1));
    T* c = DataOf<T>(context.out(0));
    const bool small = IsSmall(shape);
    const size_t grain = std::max<size_t>(1, kSmall / std::max<size_t>(1, c_size * shape.k));
    context.pool.ParallelFor(count, small ? grain : 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        if (small) {
          SmallProduct(shape, a + i * a_size, b + i * b_size, c + i * c_size);
        } else {
          Gemm(context.pool,
               GemmTask<T>{
                   .shape = shape, .a = a + i * a_size, .b = b + i * b_size, .c = c + i * c_size});
        }
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {{"batch_matmul", BatchMatmul}};

}  // namespace

std::span<const NamedKernel> BatchMatmulKernels() { return kKernels; }

}  // namespace dt
