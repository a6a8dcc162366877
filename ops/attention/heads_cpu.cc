#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

// The dimensions of [B, H, F, d].
struct Heads {
  size_t samples, heads, fields, dim;
  explicit Heads(const Shape& shape)
      : samples(static_cast<size_t>(shape[0])),
        heads(static_cast<size_t>(shape[1])),
        fields(static_cast<size_t>(shape[2])),
        dim(static_cast<size_t>(shape[3])) {}
};

// Calls copy(offset in [F, H, d], offset in [H, F, d]) for each run of d elements.
template <class Copy>
void EachRun(KernelContext& context, const Heads& shape, const Copy& copy) {
  const size_t sample = shape.heads * shape.fields * shape.dim;
  context.pool.ParallelFor(shape.samples, RowGrain(sample), [&](size_t begin, size_t end) {
    for (size_t b = begin; b < end; ++b) {
      size_t split = b * sample;
      for (size_t h = 0; h < shape.heads; ++h) {
        size_t merged = b * sample + h * shape.dim;
        for (size_t f = 0; f < shape.fields; ++f) {
          copy(merged, split);
          merged += shape.heads * shape.dim;
          split += shape.dim;
        }
      }
    }
  });
}

void SplitHeads(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const Heads shape(context.out(0).shape);
    const T* from = DataOf<T>(context.in(0));
    T* to = DataOf<T>(context.out(0));
    EachRun(context, shape, [&](size_t merged, size_t split) {
      std::copy_n(from + merged, shape.dim, to + split);
    });
  });
}

void MergeHeads(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const Heads shape(context.in(0).shape);
    const T* from = DataOf<T>(context.in(0));
    T* to = DataOf<T>(context.out(0));
    EachRun(context, shape, [&](size_t merged, size_t split) {
      std::copy_n(from + split, shape.dim, to + merged);
    });
  });
}

constexpr NamedKernel kKernels[] = {{"split_heads", SplitHeads}, {"merge_heads", MergeHeads}};

}  // namespace

std::span<const NamedKernel> HeadsKernels() { return kKernels; }

}  // namespace dt
