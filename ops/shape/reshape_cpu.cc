#include "ops/kernel_families.h"
#include "ops/strided.h"

namespace dt {
namespace {

// Writes the output in row-major order; the input is read with the strides `loop.a`.
template <class T>
void StridedCopy(KernelContext& context, Loop loop) {
  loop.Prepare(context.out(0).shape.size());
  const T* from = DataOf<T>(context.in(0));
  T* to = DataOf<T>(context.out(0));
  const size_t inner = loop.inner_size(), length = static_cast<size_t>(loop.length());
  const auto step = static_cast<size_t>(loop.a_step());
  context.pool.ParallelFor(loop.outer_size(), RowGrain(inner), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      loop.EachRow(static_cast<int64_t>(i), [&](int64_t at_from, int64_t, int64_t at) {
        const T* source = from + at_from;
        T* target = to + i * inner + at;
        for (size_t k = 0; k < length; ++k) target[k] = source[k * step];
      });
    }
  });
}

void Transpose(KernelContext& context) {
  const auto& perm = std::get<std::vector<int64_t>>(context.node.attrs.at("perm"));
  const size_t left = kLoopRank - perm.size();
  const LoopDims strides = StridesOf(RightAligned(context.in(0).shape));
  Loop loop{.dims = RightAligned(context.out(0).shape), .a = {}, .b = {}};
  for (size_t i = 0; i < perm.size(); ++i) {
    loop.a[left + i] = strides[left + static_cast<size_t>(perm[i])];
  }
  loop.b = StridesOf(loop.dims);
  OnFloat(context.in(0).dtype, [&]<class T>(T) { StridedCopy<T>(context, loop); });
}

void BroadcastTo(KernelContext& context) {
  Loop loop{.dims = RightAligned(context.out(0).shape),
            .a = StridesOf(RightAligned(context.in(0).shape)),
            .b = {}};
  loop.b = StridesOf(loop.dims);
  OnFloat(context.in(0).dtype, [&]<class T>(T) { StridedCopy<T>(context, loop); });
}

void Fill(KernelContext& context) {
  const double value = FloatAttr(context.node.attrs, "value", 0);
  OnFloat(context.out(0).dtype,
          [&]<class T>(T) { std::ranges::fill(context.out(0).as<T>(), static_cast<T>(value)); });
}

constexpr NamedKernel kKernels[] = {
    {"reshape", CopyBytes},        {"flatten", CopyBytes}, {"transpose", Transpose},
    {"broadcast_to", BroadcastTo}, {"fill", Fill},
};

}  // namespace

std::span<const NamedKernel> ReshapeKernels() { return kKernels; }

}  // namespace dt
