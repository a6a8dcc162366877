#include "ops/gemm/gemm_cpu.h"
#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

// The product of input 0's rows with the weight or, if `transposed`, with its transpose, to output
// 0. `more`: `bytes` bytes of scratch memory for the caller.
template <class T>
struct LayerProduct {
  GemmTask<T> task;
  std::byte* more = nullptr;

  LayerProduct(KernelContext& context, bool transposed, size_t bytes) {
    const MatrixShape x = AsMatrix(context.in(0)), weight = AsMatrix(context.in(1));
    const Either<T> from(context.in(0)), to(context.out(0));
    task.a = from.wide;
    task.bf16_a = from.bf16;
    task.b = DataOf<T>(context.in(1));
    task.c = to.wide;
    task.epilogue.bf16_c = to.bf16;
    task.shape = {.m = x.rows, .n = transposed ? weight.rows : weight.cols, .k = x.cols};
    task.shape.transpose_b = transposed;
    more = UseMath(context.node.attrs, task, context.scratch, bytes);
  }
};

void DenseLayer(KernelContext& context) {
  OnFloat(context.in(1).dtype, [&]<class T>(T) {
    GemmTask<T> task = LayerProduct<T>(context, false, 0).task;
    task.epilogue.bias = DataOf<T>(context.in(2));
    task.epilogue.relu = TextAttr(context.node.attrs, "activation", "none") == "relu";
    Gemm(context.pool, task);
  });
}

// Gradients that pass the layer's ReLU are multiplied by it.
template <class T>
T ScaleOf(const KernelContext& context) {
  return static_cast<T>(1 / (1 - FloatAttr(context.node.attrs, "dropout", 0)));
}

// Output 1, the sums of output 0's rows, has the same bits as reduce_batch.
void DenseLayerBack(KernelContext& context) {
  OnFloat(context.in(1).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.out(0));
    const size_t bytes = RowSums<T>::Bytes(shape.rows, shape.cols);
    auto [task, more] = LayerProduct<T>(context, true, bytes);
    const Either<T> layer(context.in(2));
    task.epilogue.above0 = layer.wide;
    task.epilogue.bf16_above0 = layer.bf16;
    task.epilogue.scale = ScaleOf<T>(context);
    task.epilogue.sums = {reinterpret_cast<T*>(more), shape.rows, shape.cols};
    Gemm(context.pool, task);
    task.epilogue.sums.AddUp(DataOf<T>(context.out(1)));
  });
}

// Passes on and sums rows in one pass, for a gradient that another operator made.
template <class T>
struct ReluPass {
  const T* dys;
  T scale;
  T* out;
  size_t cols;

  template <class Y>
  void PassAndSum(const Y* __restrict ys, size_t row, T* __restrict partial) const {
    const Y* __restrict y = ys + row * cols;
    const T* __restrict dy = dys + row * cols;
    T* __restrict dx = out + row * cols;
    for (size_t i = 0; i < cols; ++i) {
      const T kept = dy[i] * scale;
      const T d = IsAbove0(y[i]) ? kept : T(0);
      dx[i] = d;
      partial[i] += d;
    }
  }
};
void ReluBiasGrad(KernelContext& context) {
  OnFloat(context.in(1).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const Either<T> layer(context.in(0));
    const ReluPass<T> pass{DataOf<T>(context.in(1)), ScaleOf<T>(context), DataOf<T>(context.out(0)),
                           shape.cols};
    const auto sums =
        SumOverRows<T>(context, shape.rows, shape.cols, [&](size_t begin, size_t end, T* partial) {
          for (size_t r = begin; r < end; ++r) {
            if (layer.bf16 != nullptr) {
              pass.PassAndSum(layer.bf16, r, partial);
            } else {
              pass.PassAndSum(layer.wide, r, partial);
            }
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
