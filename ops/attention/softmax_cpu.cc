#include <limits>

#include "ops/kernel_families.h"
#include "ops/strided.h"
#include "ops/vector_math.h"

namespace dt {
namespace {

// Short rows go through each step together, so that the exponentials, the dearest one, fill whole
// vectors.
template <class T>
void SoftmaxRows(const T* xs, T scale, T* ys, MatrixShape shape) {
  const size_t n = shape.cols;
  for (size_t r = 0; r < shape.rows; ++r) {
    const T* __restrict x = xs + r * n;
    T* __restrict y = ys + r * n;
    const T top = MaxOf(x, n);
    for (size_t i = 0; i < n; ++i) y[i] = (x[i] - top) * scale;
  }
  for (size_t i = 0; i < shape.rows * n; ++i) ys[i] = FastExp(ys[i]);
  for (size_t r = 0; r < shape.rows; ++r) {
    T* const y = ys + r * n;
    const T share = T(1) / SumOf(y, n);
    for (size_t i = 0; i < n; ++i) y[i] *= share;
  }
}

// The mask advances with x (step 1) or stays (step 0).
template <class T>
struct MaskRow {
  const T* data;
  int64_t step;
  T at(size_t i) const { return data[static_cast<int64_t>(i) * step]; }
};
template <class T>
void MaskedRow(const T* __restrict x, const MaskRow<T>& mask, T scale, std::span<T> row) {
  T* __restrict y = row.data();
  const size_t n = row.size();
  T kept = 0;
  for (size_t i = 0; i < n; ++i) {
    const bool keep = mask.at(i) != T(0);
    y[i] = keep ? x[i] : -std::numeric_limits<T>::infinity();
    kept = keep ? T(1) : kept;
  }
  if (kept == T(0)) {
    std::fill_n(y, n, T(0));
    return;
  }
  const T top = MaxOf(y, n);
  for (size_t i = 0; i < n; ++i) {
    y[i] = mask.at(i) != T(0) ? FastExp((x[i] - top) * scale) : T(0);
  }
  const T share = T(1) / SumOf(y, n);
  for (size_t i = 0; i < n; ++i) y[i] *= share;
}

// Where the mask for a row of x begins, if the mask is broadcast to the shape of x.
class MaskRows {
 public:
  MaskRows(const TensorView& x, const TensorView& mask)
      : dims_(RightAligned(x.shape)), strides_(StridesOf(RightAligned(mask.shape))) {}

  int64_t step() const { return strides_[kLoopRank - 1]; }
  int64_t OffsetOf(size_t row) const {
    int64_t left = static_cast<int64_t>(row), offset = 0;
    for (size_t d = kLoopRank - 1; left > 0 && d-- > 0;) {
      offset += left % dims_[d] * strides_[d];
      left /= dims_[d];
    }
    return offset;
  }

 private:
  LoopDims dims_, strides_;
};

void Softmax(KernelContext& context) {
  const double factor = FloatAttr(context.node.attrs, "scale", 1);
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const T* x = DataOf<T>(context.in(0));
    T* y = DataOf<T>(context.out(0));
    const T scale = static_cast<T>(factor);
    constexpr size_t kTogether = 1024;  // Elements; they stay in the first-level cache.
    const size_t rows = std::max<size_t>(1, kTogether / std::max<size_t>(1, shape.cols));
    context.pool.ParallelFor(shape.rows, RowGrain(shape.cols), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; r += rows) {
        const size_t at = r * shape.cols;
        SoftmaxRows(x + at, scale, y + at, {std::min(rows, end - r), shape.cols});
      }
    });
  });
}

void MaskedSoftmax(KernelContext& context) {
  const double factor = FloatAttr(context.node.attrs, "scale", 1);
  const MaskRows masks(context.in(0), context.in(1));
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const T *x = DataOf<T>(context.in(0)), *mask = DataOf<T>(context.in(1));
    T* y = DataOf<T>(context.out(0));
    const T scale = static_cast<T>(factor);
    context.pool.ParallelFor(shape.rows, RowGrain(shape.cols), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        const MaskRow<T> row{mask + masks.OffsetOf(r), masks.step()};
        MaskedRow<T>(x + r * shape.cols, row, scale, {y + r * shape.cols, shape.cols});
      }
    });
  });
}

void SoftmaxGrad(KernelContext& context) {
  const double factor = FloatAttr(context.node.attrs, "scale", 1);
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const T *ys = DataOf<T>(context.in(0)), *dys = DataOf<T>(context.in(1));
    T* out = DataOf<T>(context.out(0));
    const T scale = static_cast<T>(factor);
    context.pool.ParallelFor(shape.rows, RowGrain(shape.cols), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        const T* __restrict y = ys + r * shape.cols;
        const T* __restrict dy = dys + r * shape.cols;
        T* __restrict dx = out + r * shape.cols;
        const T mean = DotOf(y, dy, shape.cols);
        for (size_t i = 0; i < shape.cols; ++i) dx[i] = scale * y[i] * (dy[i] - mean);
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"softmax", Softmax},
    {"masked_softmax", MaskedSoftmax},
    {"softmax_grad", SoftmaxGrad},
};

}  // namespace

std::span<const NamedKernel> SoftmaxKernels() { return kKernels; }

}  // namespace dt
