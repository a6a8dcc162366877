#include "common/base/float_formats.h"
#include "ops/gemm/gemm_cpu.h"
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
bool IsAbove0(T x) {
  return x > T(0);
}
bool IsAbove0(uint16_t bf16) { return FromBf16(bf16) > 0.0f; }
template <class Y, class T>
void PassWhereAbove0(const Y* __restrict y, T* __restrict dx, size_t n) {
  for (size_t i = 0; i < n; ++i) dx[i] = IsAbove0(y[i]) ? dx[i] : T(0);
}

// A product of the rows of input 0 with the weight, turned or not, into output 0, if that is not
// stored in bf16; and `more` bytes of scratch memory.
template <class T>
struct LayerProduct {
  GemmTask<T> task;
  std::byte* more = nullptr;

  LayerProduct(KernelContext& context, bool turned, size_t bytes) {
    const MatrixShape x = AsMatrix(context.in(0)), weight = AsMatrix(context.in(1));
    const Either<T> from(context.in(0));
    task.a = from.wide;
    task.bf16_a = from.bf16;
    task.b = DataOf<T>(context.in(1));
    task.c = Either<T>(context.out(0)).wide;
    task.shape = {.m = x.rows, .n = turned ? weight.rows : weight.cols, .k = x.cols};
    task.shape.transpose_b = turned;
    more = UseMath(context.node.attrs, task, context.scratch, bytes);
  }
};

// A row of a tile that is done, if the result is stored in bf16.
void Store(const float* from, uint16_t* to, size_t n) { StoreBf16({from, n}, to); }
void Store(const double*, uint16_t*, size_t) { DT_CHECK_MSG(false, "bf16 of float64"); }

void DenseLayer(KernelContext& context) {
  const bool relu = TextAttr(context.node.attrs, "activation", "none") == "relu";
  OnFloat(context.in(1).dtype, [&]<class T>(T) {
    const LayerProduct<T> product(context, false, 0);
    const T* const bias = DataOf<T>(context.in(2));
    const Either<T> out(context.out(0));
    const size_t cols = product.task.shape.n;
    Gemm(context.pool, product.task, [&](const GemmTile<T>& tile) {
      for (size_t r = 0; r < tile.rows; ++r) {
        T* const y = tile.row_of(r);
        if (relu) AddBiasRelu(bias + tile.col, y, tile.cols);
        if (!relu) AddBias(bias + tile.col, y, tile.cols);
        const size_t at = (tile.row + r) * cols + tile.col;
        if (out.bf16 != nullptr) Store(y, out.bf16 + at, tile.cols);
      }
    });
  });
}

// The sums of output 0's rows into output 1, as reduce_batch gives them, are added up tile by tile.
void DenseLayerBack(KernelContext& context) {
  static_assert(kTileRows % kSumRows == 0);
  OnFloat(context.in(1).dtype, [&]<class T>(T) {
    const MatrixShape whole = AsMatrix(context.out(0));
    const LayerProduct<T> product(context, true, RowSums<T>::Bytes(whole.rows, whole.cols));
    const RowSums<T> sums{reinterpret_cast<T*>(product.more), whole.rows, whole.cols};
    const Either<T> layer(context.in(2)), out(context.out(0));
    Gemm(context.pool, product.task, [&](const GemmTile<T>& tile) {
      for (size_t r = 0; r < tile.rows; ++r) {
        T* const dx = tile.row_of(r);
        T* const partial = sums.PieceOf(tile.row + r) + tile.col;
        const size_t at = (tile.row + r) * whole.cols + tile.col;
        if (layer.bf16 != nullptr) PassWhereAbove0(layer.bf16 + at, dx, tile.cols);
        if (layer.wide != nullptr) PassWhereAbove0(layer.wide + at, dx, tile.cols);
        if (r % kSumRows == 0) std::fill_n(partial, tile.cols, T(0));
        AddTo(dx, partial, tile.cols);
        if (out.bf16 != nullptr) Store(dx, out.bf16 + at, tile.cols);
      }
    });
    sums.AddUp(DataOf<T>(context.out(1)));
  });
}

// As above, of a gradient that another operator gives: rows are passed on and summed in one go.
template <class Y, class T>
void PassAndSum(const Y* __restrict y, const T* __restrict dy, T* __restrict dx,
                T* __restrict partial, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const T d = IsAbove0(y[i]) ? dy[i] : T(0);
    dx[i] = d;
    partial[i] += d;
  }
}
void ReluBiasGrad(KernelContext& context) {
  OnFloat(context.in(1).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const Either<T> layer(context.in(0));
    const T* const dy = DataOf<T>(context.in(1));
    T* const dx = DataOf<T>(context.out(0));
    const auto sums =
        SumOverRows<T>(context, shape.rows, shape.cols, [&](size_t begin, size_t end, T* partial) {
          for (size_t r = begin; r < end; ++r) {
            const size_t at = r * shape.cols;
            if (layer.bf16 != nullptr) {
              PassAndSum(layer.bf16 + at, dy + at, dx + at, partial, shape.cols);
            } else {
              PassAndSum(layer.wide + at, dy + at, dx + at, partial, shape.cols);
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
