#include "ops/dense/gemm_cpu.h"
#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

// Each part of the result gets its bias, or passes its gradient on, on the thread that has just
// computed it, while it is in that processor's cache.

template <class T>
void AddBias(const T* __restrict bias, T* __restrict y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] += bias[i];
}
template <class T>
void AddBiasRelu(const T* __restrict bias, T* __restrict y, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const T z = y[i] + bias[i];
    y[i] = z > T(0) ? z : T(0);
  }
}
template <class T>
void PassWhereAbove0(const T* __restrict y, T* __restrict dx, size_t n) {
  for (size_t i = 0; i < n; ++i) dx[i] = y[i] > T(0) ? dx[i] : T(0);
}

// A product of the rows of input 0 with the weight, turned or not, into output 0.
template <class T>
GemmTask<T> RowsTimesWeight(KernelContext& context, bool turned) {
  const MatrixShape x = AsMatrix(context.in(0)), weight = AsMatrix(context.in(1));
  GemmTask<T> task{
      .a = DataOf<T>(context.in(0)), .b = DataOf<T>(context.in(1)), .c = DataOf<T>(context.out(0))};
  task.shape = {.m = x.rows, .n = turned ? weight.rows : weight.cols, .k = x.cols};
  task.shape.transpose_b = turned;
  UseMath(context.node.attrs, task, context.scratch);
  return task;
}

void DenseLayer(KernelContext& context) {
  const bool relu = TextAttr(context.node.attrs, "activation", "none") == "relu";
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const GemmTask<T> task = RowsTimesWeight<T>(context, false);
    const T* const bias = DataOf<T>(context.in(2));
    Gemm(context.pool, task, [&](const GemmTile& tile) {
      for (size_t r = tile.row; r < tile.row + tile.rows; ++r) {
        T* const y = task.c + r * task.shape.n + tile.col;
        if (relu) AddBiasRelu(bias + tile.col, y, tile.cols);
        if (!relu) AddBias(bias + tile.col, y, tile.cols);
      }
    });
  });
}

// The sums of output 0's rows into output 1, as reduce_batch gives them.
template <class T>
void SumGradient(KernelContext& context) {
  const MatrixShape shape = AsMatrix(context.out(0));
  const T* const dz = DataOf<T>(context.out(0));
  const auto sums =
      SumOverRows<T>(context, shape.rows, shape.cols, [&](size_t begin, size_t end, T* partial) {
        for (size_t r = begin; r < end; ++r) AddTo(dz + r * shape.cols, partial, shape.cols);
      });
  std::ranges::copy(sums, DataOf<T>(context.out(1)));
}

void DenseLayerBack(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const GemmTask<T> task = RowsTimesWeight<T>(context, true);
    const T* const y = DataOf<T>(context.in(2));
    Gemm(context.pool, task, [&](const GemmTile& tile) {
      for (size_t r = tile.row; r < tile.row + tile.rows; ++r) {
        const size_t at = r * task.shape.n + tile.col;
        PassWhereAbove0(y + at, task.c + at, tile.cols);
      }
    });
    SumGradient<T>(context);
  });
}

// As above, of a gradient that another operator gives: rows are passed on and summed in one go.
template <class T>
void PassAndSum(const T* __restrict y, const T* __restrict dy, T* __restrict dx,
                T* __restrict partial, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const T d = y[i] > T(0) ? dy[i] : T(0);
    dx[i] = d;
    partial[i] += d;
  }
}
void ReluBiasGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const T *const y = DataOf<T>(context.in(0)), *const dy = DataOf<T>(context.in(1));
    T* const dx = DataOf<T>(context.out(0));
    const auto sums =
        SumOverRows<T>(context, shape.rows, shape.cols, [&](size_t begin, size_t end, T* partial) {
          for (size_t r = begin; r < end; ++r) {
            const size_t at = r * shape.cols;
            PassAndSum(y + at, dy + at, dx + at, partial, shape.cols);
          }
        });
    std::ranges::copy(sums, DataOf<T>(context.out(1)));
  });
}

constexpr NamedKernel kKernels[] = {
    {"dense_layer", DenseLayer},
    {"dense_layer_back", DenseLayerBack},
    {"relu_bias_grad", ReluBiasGrad},
};

}  // namespace

std::span<const NamedKernel> DenseLayerKernels() { return kKernels; }

}  // namespace dt
