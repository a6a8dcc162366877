#include "ops/gemm/gemm_cpu.h"
#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

// Calls body(expert, first row, number of rows) for each expert, several at once. Each divides its
// work by its number of rows alone.
template <class Body>
void ForExperts(KernelContext& context, const Body& body) {
  const std::span<const uint32_t> ends = context.in(1).as<uint32_t>();
  context.pool.ParallelFor(ends.size(), 1, [&](size_t first, size_t last) {
    for (size_t e = first; e < last; ++e) {
      const size_t begin = e == 0 ? 0 : ends[e - 1];
      body(e, begin, ends[e] - begin);
    }
  });
}

void ExpertMatmul(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const size_t k = AsMatrix(context.in(0)).cols, n = AsMatrix(context.out(0)).cols;
    const bool transposed = BoolAttr(context.node.attrs, "transpose_b", false);
    const T* const rows = DataOf<T>(context.in(0));
    const T* const weights = DataOf<T>(context.in(2));
    const T* const biases = context.inputs.size() == 4 ? DataOf<T>(context.in(3)) : nullptr;
    T* const out = DataOf<T>(context.out(0));
    ForExperts(context, [&](size_t e, size_t begin, size_t count) {
      GemmTask<T> task{
          .a = rows + begin * k, .b = weights + e * k * n, .c = out + begin * n, .rows_vary = true};
      task.shape = {.m = count, .n = n, .k = k, .transpose_b = transposed};
      if (biases != nullptr) task.epilogue.bias = biases + e * n;
      Gemm(context.pool, task);
    });
  });
}

void ExpertMatmulGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const size_t m = AsMatrix(context.in(0)).cols, n = AsMatrix(context.in(2)).cols;
    const T *const a = DataOf<T>(context.in(0)), *const b = DataOf<T>(context.in(2));
    T* const out = DataOf<T>(context.out(0));
    ForExperts(context, [&](size_t e, size_t begin, size_t count) {
      GemmTask<T> task{
          .a = a + begin * m, .b = b + begin * n, .c = out + e * m * n, .rows_vary = true};
      task.shape = {.m = m, .n = n, .k = count, .transpose_a = true};
      Gemm(context.pool, task);
    });
  });
}

// One expert after another, because each has many rows and all use the same scratch memory.
void ExpertSum(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const size_t cols = AsMatrix(context.in(0)).cols;
    const T* rows = DataOf<T>(context.in(0));
    T* out = DataOf<T>(context.out(0));
    size_t at = 0;
    for (const uint32_t end : context.in(1).as<uint32_t>()) {
      const auto sums =
          SumOverRows<T>(context, end - at, cols, [&](size_t first, size_t last, T* partial) {
            for (size_t r = first; r < last; ++r) AddTo(rows + (at + r) * cols, partial, cols);
          });
      std::ranges::copy(sums, out);
      out += cols;
      at = end;
    }
  });
}

constexpr NamedKernel kKernels[] = {
    {"expert_matmul", ExpertMatmul},
    {"expert_matmul_grad", ExpertMatmulGrad},
    {"expert_sum", ExpertSum},
};

}  // namespace

std::span<const NamedKernel> ExpertMatmulKernels() { return kKernels; }

}  // namespace dt
