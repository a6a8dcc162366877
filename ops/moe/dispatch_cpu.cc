#include <utility>

#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

// Counting sort by expert, on one thread, because the choices are few compared with the rows.
void Sort(std::span<const uint32_t> chosen, std::span<uint32_t> ends,
          std::span<uint32_t> positions) {
  const auto last = static_cast<uint32_t>(ends.size() - 1);
  std::ranges::fill(ends, 0u);
  for (const uint32_t expert : chosen) ++ends[std::min(expert, last)];
  uint32_t begin = 0;
  for (uint32_t& end : ends) begin += std::exchange(end, begin);
  // Each entry starts where its expert's rows begin, and advances to where they end.
  for (size_t p = 0; p < chosen.size(); ++p) positions[p] = ends[std::min(chosen[p], last)]++;
}

// Calls f(sample, choice, position) for each choice; a sample's choices run in order on one thread.
template <class F>
void ForChoices(KernelContext& context, const TensorView& positions, size_t cols, const F& f) {
  const MatrixShape shape = AsMatrix(positions);
  const uint32_t* const at = DataOf<uint32_t>(positions);
  context.pool.ParallelFor(shape.rows, RowGrain(shape.cols * cols), [&](size_t begin, size_t end) {
    for (size_t p = begin * shape.cols; p < end * shape.cols; ++p) f(p / shape.cols, p, at[p]);
  });
}

void Dispatch(KernelContext& context) {
  Sort(context.in(1).as<uint32_t>(), context.out(1).as<uint32_t>(), context.out(2).as<uint32_t>());
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const size_t cols = AsMatrix(context.in(0)).cols;
    const T* const x = DataOf<T>(context.in(0));
    T* const rows = DataOf<T>(context.out(0));
    ForChoices(context, context.out(2), cols, [&](size_t b, size_t, size_t position) {
      std::copy_n(x + b * cols, cols, rows + position * cols);
    });
  });
}

void Combine(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const size_t cols = AsMatrix(context.in(0)).cols, k = AsMatrix(context.in(1)).cols;
    const T* const rows = DataOf<T>(context.in(0));
    const T* const gates = context.inputs.size() == 3 ? DataOf<T>(context.in(2)) : nullptr;
    T* const out = DataOf<T>(context.out(0));
    ForChoices(context, context.in(1), cols, [&](size_t b, size_t p, size_t position) {
      T* const sum = out + b * cols;
      if (p == b * k) std::fill_n(sum, cols, T(0));
      AddScaled(gates == nullptr ? T(1) : gates[p], rows + position * cols, sum, cols);
    });
  });
}

void CombineGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const size_t cols = AsMatrix(context.in(0)).cols;
    const T* const dy = DataOf<T>(context.in(0));
    const T* const gates = context.inputs.size() == 3 ? DataOf<T>(context.in(2)) : nullptr;
    T* const rows = DataOf<T>(context.out(0));
    ForChoices(context, context.in(1), cols, [&](size_t b, size_t p, size_t position) {
      const T gate = gates == nullptr ? T(1) : gates[p];
      const T* __restrict from = dy + b * cols;
      T* __restrict to = rows + position * cols;
      for (size_t c = 0; c < cols; ++c) to[c] = gate * from[c];
    });
  });
}

void CombineGatesGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const size_t cols = AsMatrix(context.in(0)).cols;
    const T *const dy = DataOf<T>(context.in(0)), *const rows = DataOf<T>(context.in(2));
    T* const out = DataOf<T>(context.out(0));
    ForChoices(context, context.in(1), cols, [&](size_t b, size_t p, size_t position) {
      out[p] = DotOf(dy + b * cols, rows + position * cols, cols);
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"dispatch", Dispatch},
    {"combine", Combine},
    {"combine_grad", CombineGrad},
    {"combine_gates_grad", CombineGatesGrad},
};

}  // namespace

std::span<const NamedKernel> DispatchKernels() { return kKernels; }

}  // namespace dt
