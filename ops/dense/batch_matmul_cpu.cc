#include <cstring>

#include "ops/gemm/gemm_cpu.h"
#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

// Small products, such as those of attention, are computed here, because a library call costs more
// than their arithmetic. The right operand is copied to rows of whole vectors that fit into a
// thread's first-level cache; the result is computed in blocks of kRows × kCols that stay in
// registers.
constexpr size_t kRows = 4, kCols = 16;
constexpr size_t kPacked = 6144;       // Most elements of a packed right operand.
constexpr size_t kSmall = 256 * 1024;  // Most multiplications of a small product.

size_t PaddedCols(size_t n) { return (n + kCols - 1) / kCols * kCols; }

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

// Explicit vector registers: the compiler would otherwise choose an order without them.
template <class T>
struct Register {
  typedef T Type __attribute__((vector_size(32)));
  static constexpr size_t kLanes = 32 / sizeof(T);
  static constexpr size_t kCount = kCols / kLanes;  // Registers for kCols elements.

  static Type Load(const T* from) {
    Type value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  static void Store(const Type& value, T* to) { std::memcpy(to, &value, sizeof(value)); }
};

// `rows` rows of op(A), at strides `row` and `col`, times kCols columns of the packed operand.
// `cols` columns of the result are stored.
template <class T>
struct Block {
  const T* a;
  size_t row, col, k;
  const T* b;
  size_t width;
};
template <size_t rows, class T>
void Multiply(const Block<T>& in, T* c, size_t stride, size_t cols) {
  using Vector = Register<T>;
  typename Vector::Type sum[rows][Vector::kCount] = {};
  for (size_t k = 0; k < in.k; ++k) {
    const T* const b = in.b + k * in.width;
    for (size_t v = 0; v < Vector::kCount; ++v) {
      const typename Vector::Type of_b = Vector::Load(b + v * Vector::kLanes);
      for (size_t r = 0; r < rows; ++r) sum[r][v] += in.a[r * in.row + k * in.col] * of_b;
    }
  }
  T stored[rows][kCols];
  for (size_t r = 0; r < rows; ++r) {
    for (size_t v = 0; v < Vector::kCount; ++v) {
      Vector::Store(sum[r][v], stored[r] + v * Vector::kLanes);
    }
  }
  for (size_t r = 0; r < rows; ++r) std::copy_n(stored[r], cols, c + r * stride);
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
    for (size_t j = 0; j < shape.n; j += kCols) {
      in.b = packed + j;
      T* const to = c + i * shape.n + j;
      const size_t cols = std::min(kCols, shape.n - j);
      if (rows == kRows) Multiply<kRows>(in, to, shape.n, cols);
      if (rows == 2) Multiply<2>(in, to, shape.n, cols);
      if (rows == 1) Multiply<1>(in, to, shape.n, cols);
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
