#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

// The padded form holds the last `length` of a sample's values [begin, end).
struct Lists {
  std::span<const uint32_t> ends;
  size_t length;

  size_t begin(size_t sample) const { return sample == 0 ? 0 : ends[sample - 1]; }
  size_t end(size_t sample) const { return ends[sample]; }
  size_t kept_begin(size_t sample) const {
    return end(sample) - std::min(end(sample) - begin(sample), length);
  }
  size_t kept(size_t sample) const { return end(sample) - kept_begin(sample); }
};

void LengthsMask(KernelContext& context) {
  const Lists lists{context.in(0).as<uint32_t>(), static_cast<size_t>(context.out(0).shape[1])};
  OnFloat(context.out(0).dtype, [&]<class T>(T) {
    T* const out = DataOf<T>(context.out(0));
    const size_t grain = RowGrain(lists.length);
    context.pool.ParallelFor(lists.ends.size(), grain, [&](size_t begin, size_t end) {
      for (size_t b = begin; b < end; ++b) {
        T* to = std::fill_n(out + b * lists.length, lists.kept(b), T(1));
        std::fill_n(to, lists.length - lists.kept(b), T(0));
      }
    });
  });
}

void RaggedToPadded(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const Shape& shape = context.out(0).shape;
    const Lists lists{context.in(1).as<uint32_t>(), static_cast<size_t>(shape[1])};
    const auto dim = static_cast<size_t>(shape[2]);
    const T* const in = DataOf<T>(context.in(0));
    T* const out = DataOf<T>(context.out(0));
    const size_t grain = RowGrain(lists.length * dim);
    context.pool.ParallelFor(lists.ends.size(), grain, [&](size_t begin, size_t end) {
      for (size_t b = begin; b < end; ++b) {
        const size_t kept = lists.kept(b);
        T* to =
            std::copy_n(in + lists.kept_begin(b) * dim, kept * dim, out + b * lists.length * dim);
        std::fill_n(to, (lists.length - kept) * dim, T(0));
      }
    });
  });
}

void PaddedToRagged(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const Shape& shape = context.in(0).shape;
    const Lists lists{context.in(1).as<uint32_t>(), static_cast<size_t>(shape[1])};
    const auto dim = static_cast<size_t>(shape[2]);
    const T* const in = DataOf<T>(context.in(0));
    T* const out = DataOf<T>(context.out(0));
    const size_t grain = RowGrain(lists.length * dim);
    context.pool.ParallelFor(lists.ends.size(), grain, [&](size_t begin, size_t end) {
      for (size_t b = begin; b < end; ++b) {
        const size_t cut = lists.kept_begin(b) - lists.begin(b);
        T* to = std::fill_n(out + lists.begin(b) * dim, cut * dim, T(0));
        std::copy_n(in + b * lists.length * dim, lists.kept(b) * dim, to);
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"lengths_mask", LengthsMask},
    {"ragged_to_padded", RaggedToPadded},
    {"padded_to_ragged", PaddedToRagged},
};

}  // namespace

std::span<const NamedKernel> RaggedKernels() { return kKernels; }

}  // namespace dt
