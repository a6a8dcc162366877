#include <cmath>

#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

// The alpha of column c is alpha[c * step].
template <class T>
struct Slopes {
  const T* alpha;
  size_t step;
  explicit Slopes(const TensorView& view)
      : alpha(DataOf<T>(view)), step(view.shape[0] == 1 ? 0 : 1) {}
  T operator[](size_t c) const { return alpha[c * step]; }
};

template <class T>
T Gate(T normal) {
  return T(1) / (T(1) + std::exp(-normal));
}

void Prelu(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const Slopes<T> alpha(context.in(1));
    const T* const in = DataOf<T>(context.in(0));
    T* const out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(shape.rows, RowGrain(shape.cols), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        const T* __restrict x = in + r * shape.cols;
        T* __restrict y = out + r * shape.cols;
        for (size_t c = 0; c < shape.cols; ++c) y[c] = x[c] > T(0) ? x[c] : alpha[c] * x[c];
      }
    });
  });
}

void Dice(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const Slopes<T> alpha(context.in(2));
    const T *const in = DataOf<T>(context.in(0)), *const normals = DataOf<T>(context.in(1));
    T* const out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(shape.rows, RowGrain(shape.cols), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        const T* __restrict x = in + r * shape.cols;
        const T* __restrict normal = normals + r * shape.cols;
        T* __restrict y = out + r * shape.cols;
        for (size_t c = 0; c < shape.cols; ++c) {
          y[c] = x[c] * (alpha[c] + (T(1) - alpha[c]) * Gate(normal[c]));
        }
      }
    });
  });
}

// Stores alpha's gradient: by column, or the sum of all columns in order if there is one alpha.
template <class T>
void StoreAlphaGrad(std::span<const T> sums, const TensorView& to) {
  const std::span<T> out = to.as<T>();
  if (out.size() == sums.size()) {
    std::ranges::copy(sums, out.begin());
    return;
  }
  double total = 0;
  for (const T sum : sums) total += static_cast<double>(sum);
  out[0] = static_cast<T>(total);
}

void PreluGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const Slopes<T> alpha(context.in(1));
    const T *const in = DataOf<T>(context.in(0)), *const grads = DataOf<T>(context.in(2));
    T* const out = DataOf<T>(context.out(0));
    const auto sums = SumOverRows<T>(context, shape.rows, shape.cols,
                                     [&](size_t begin, size_t end, T* __restrict dalpha) {
                                       for (size_t r = begin; r < end; ++r) {
                                         const T* __restrict x = in + r * shape.cols;
                                         const T* __restrict dy = grads + r * shape.cols;
                                         T* __restrict dx = out + r * shape.cols;
                                         for (size_t c = 0; c < shape.cols; ++c) {
                                           dx[c] = x[c] > T(0) ? dy[c] : alpha[c] * dy[c];
                                           dalpha[c] += x[c] > T(0) ? T(0) : x[c] * dy[c];
                                         }
                                       }
                                     });
    StoreAlphaGrad<T>(sums, context.out(1));
  });
}

// With p the gate: dx = dy (alpha + (1 - alpha) p), dnormal = dy x (1 - alpha) p (1 - p),
// dalpha = Σ dy x (1 - p).
void DiceGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const size_t cols = shape.cols;
    const Slopes<T> alpha(context.in(2));
    const T *const in = DataOf<T>(context.in(0)), *const normals = DataOf<T>(context.in(1));
    const T* const grads = DataOf<T>(context.in(3));
    T *const out = DataOf<T>(context.out(0)), *const normal_out = DataOf<T>(context.out(1));
    const auto sums = SumOverRows<T>(
        context, shape.rows, cols, [&](size_t begin, size_t end, T* __restrict dalpha) {
          for (size_t r = begin; r < end; ++r) {
            const T* __restrict x = in + r * cols, * __restrict normal = normals + r * cols;
            const T* __restrict dy = grads + r * cols;
            T* __restrict dx = out + r * cols, * __restrict dnormal = normal_out + r * cols;
            for (size_t c = 0; c < cols; ++c) {
              const T p = Gate(normal[c]), keep = T(1) - alpha[c];
              dx[c] = dy[c] * (alpha[c] + keep * p);
              dnormal[c] = dy[c] * x[c] * keep * p * (T(1) - p);
              dalpha[c] += dy[c] * x[c] * (T(1) - p);
            }
          }
        });
    StoreAlphaGrad<T>(sums, context.out(2));
  });
}

constexpr NamedKernel kKernels[] = {
    {"prelu", Prelu},
    {"dice", Dice},
    {"prelu_grad", PreluGrad},
    {"dice_grad", DiceGrad},
};

}  // namespace

std::span<const NamedKernel> PreluKernels() { return kKernels; }

}  // namespace dt
