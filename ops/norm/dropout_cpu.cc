#include "ops/kernel_families.h"
#include "ops/kernel_util.h"
#include "ops/norm/dropout_mask_cpu.h"

namespace dt {
namespace {

DropoutMask OwnMask(const KernelContext& context) {
  const Attrs& attrs = context.node.attrs;
  const auto of = attrs.find("mask_of");
  const bool own = of == attrs.end();
  return MaskOf(context.run, own ? context.node.name : std::get<std::string>(of->second),
                FloatAttr(attrs, "rate", 0.5));
}

// A run of elements that begins anywhere in its sample.
template <class T>
void OneRun(const DropoutMask& mask, uint64_t sample, size_t begin, const T* x, std::span<T> to) {
  const T scale = static_cast<T>(mask.scale);
  for (size_t i = 0; i < to.size();) {
    const size_t at = begin + i, skipped = at % kMaskPlaces;
    const size_t count = std::min(kMaskPlaces - skipped, to.size() - i);
    const MaskBits bits = DrawMaskBits(mask.key, sample, (at - skipped) / 4);
    for (size_t k = 0; k < count; ++k) {
      to[i + k] = x[i + k] * (bits[skipped + k] < mask.below ? T(0) : scale);
    }
    i += count;
  }
}

// A part of the elements of each sample, as the attributes `first` and `whole` say.
template <class T>
void OnePart(KernelContext& context) {
  const Shape& shape = context.in(0).shape;
  const std::vector<int64_t> first = IntsAttr(context.node.attrs, "first");
  const std::vector<int64_t> whole = IntsAttr(context.node.attrs, "whole");
  const DropoutMask mask = OwnMask(context);
  const auto length = static_cast<size_t>(shape.back());
  const T* x = DataOf<T>(context.in(0));
  T* out = DataOf<T>(context.out(0));
  const size_t runs = length == 0 ? 0 : static_cast<size_t>(context.in(0).size()) / length;
  context.pool.ParallelFor(runs, RowGrain(length), [&](size_t from, size_t end) {
    for (size_t r = from; r < end; ++r) {
      // The position of the run in its sample, the last dimension fastest.
      size_t rest = r, begin = static_cast<size_t>(first.back()), stride = 1;
      for (size_t d = shape.size() - 1; d-- > 1;) {
        stride *= static_cast<size_t>(whole[d + 1]);
        begin += (static_cast<size_t>(first[d]) + rest % static_cast<size_t>(shape[d])) * stride;
        rest /= static_cast<size_t>(shape[d]);
      }
      OneRun<T>(mask, context.run.first_sample + rest, begin, x + r * length,
                {out + r * length, length});
    }
  });
}

// The gradient multiplies by the same mask.
void Dropout(KernelContext& context) {
  if (!context.run.training) return CopyBytes(context);
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    if (!IntsAttr(context.node.attrs, "first").empty()) return OnePart<T>(context);
    const MatrixShape shape = AsSamples(context.in(0));
    const DropoutMask mask = OwnMask(context);
    const T* x = DataOf<T>(context.in(0));
    T* out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(shape.rows, RowGrain(shape.cols), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        const size_t at = r * shape.cols;
        MaskSample<T>(mask, context.run.first_sample + r, x + at, {out + at, shape.cols});
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"dropout", Dropout},
    {"dropout_grad", Dropout},
};

}  // namespace

std::span<const NamedKernel> DropoutKernels() { return kKernels; }

}  // namespace dt
