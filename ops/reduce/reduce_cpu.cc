#include "ops/kernel_families.h"
#include "ops/strided.h"

namespace dt {
namespace {

template <class T>
void AddRow(const Loop& loop, const T* from, T* to) {
  const auto length = static_cast<size_t>(loop.length());
  if (loop.b_step() != 0) {
    AddTo(from, to, length);
  } else {
    *to += SumOf(from, length);
  }
}

// Sums the input into a tensor of shape `kept`, whose dimensions are the input's or 1, then
// multiplies by `factor`. The first dimension is summed by partial sums of kSumRows rows, in order;
// the others one element after another.
template <class T>
void ReduceInto(KernelContext& context, const LoopDims& kept, T factor) {
  Loop loop{.dims = RightAligned(context.in(0).shape), .a = {}, .b = StridesOf(kept)};
  loop.a = StridesOf(loop.dims);
  loop.Prepare(context.in(0).shape.size());
  const T* from = DataOf<T>(context.in(0));
  const std::span<T> out = context.out(0).as<T>();
  const auto add_outer = [&](size_t i, T* to) {
    loop.EachRow(static_cast<int64_t>(i), [&](int64_t at_from, int64_t at_to, int64_t) {
      AddRow(loop, from + at_from, to + at_to);
    });
  };
  if (loop.b[0] == 0) {
    const auto sums = SumOverRows<T>(context, loop.outer_size(), out.size(),
                                     [&](size_t begin, size_t end, T* partial) {
                                       for (size_t i = begin; i < end; ++i) add_outer(i, partial);
                                     });
    for (size_t i = 0; i < out.size(); ++i) out[i] = sums[i] * factor;
    return;
  }
  const size_t block = out.size() / std::max<size_t>(1, loop.outer_size());
  context.pool.ParallelFor(
      loop.outer_size(), RowGrain(loop.inner_size()), [&](size_t begin, size_t end) {
        const std::span<T> mine = out.subspan(begin * block, (end - begin) * block);
        std::ranges::fill(mine, T(0));
        for (size_t i = begin; i < end; ++i) add_outer(i, out.data());
        for (T& value : mine) value *= factor;
      });
}

void ReduceTo(KernelContext& context) {
  OnFloat(context.in(0).dtype,
          [&]<class T>(T) { ReduceInto<T>(context, RightAligned(context.out(0).shape), T(1)); });
}

// The input's shape with the reduced dimensions set to 1.
LoopDims KeptDims(const KernelContext& context) {
  const AttrValue& axis = context.node.attrs.at("axis");
  const auto* const one = std::get_if<int64_t>(&axis);
  const std::span<const int64_t> axes =
      one != nullptr ? std::span(one, 1) : std::span(std::get<std::vector<int64_t>>(axis));
  LoopDims kept = RightAligned(context.in(0).shape);
  const size_t left = kLoopRank - context.in(0).shape.size();
  for (const int64_t a : axes) {
    kept[a < 0 ? kLoopRank - static_cast<size_t>(-a) : left + static_cast<size_t>(a)] = 1;
  }
  return kept;
}

void ReduceSum(KernelContext& context) {
  OnFloat(context.in(0).dtype,
          [&]<class T>(T) { ReduceInto<T>(context, KeptDims(context), T(1)); });
}

void ReduceMean(KernelContext& context) {
  const LoopDims kept = KeptDims(context), whole = RightAligned(context.in(0).shape);
  double count = 1;
  for (size_t i = 0; i < kLoopRank; ++i) {
    if (kept[i] != whole[i]) count *= static_cast<double>(whole[i]);
  }
  OnFloat(context.in(0).dtype,
          [&]<class T>(T) { ReduceInto<T>(context, kept, static_cast<T>(1 / count)); });
}

void ReduceBatch(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const T* from = DataOf<T>(context.in(0));
    const auto sums =
        SumOverRows<T>(context, shape.rows, shape.cols, [&](size_t begin, size_t end, T* partial) {
          for (size_t r = begin; r < end; ++r) {
            AddTo(from + r * shape.cols, partial, shape.cols);
          }
        });
    std::ranges::copy(sums, DataOf<T>(context.out(0)));
  });
}

void BatchCount(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    std::ranges::fill(context.out(0).as<T>(), static_cast<T>(AsMatrix(context.in(0)).rows));
  });
}

constexpr NamedKernel kKernels[] = {
    {"reduce_sum", ReduceSum},     {"reduce_mean", ReduceMean}, {"batch_count", BatchCount},
    {"reduce_batch", ReduceBatch}, {"reduce_to", ReduceTo},
};

}  // namespace

std::span<const NamedKernel> ReduceKernels() { return kKernels; }

}  // namespace dt
