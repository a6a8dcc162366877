#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

// The whole tensor as [outer, size, inner], and the chosen positions as [outer, indices, inner].
struct Gathering {
  size_t outer = 1, size = 1, inner = 1;
  std::span<const int64_t> indices;

  Gathering(const KernelContext& context, const TensorView& whole)
      : indices(std::get<std::vector<int64_t>>(context.node.attrs.at("indices"))) {
    const int64_t written = IntAttr(context.node.attrs, "axis", -1);
    const auto axis =
        static_cast<size_t>(written < 0 ? written + std::ssize(whole.shape) : written);
    for (size_t i = 0; i < whole.shape.size(); ++i) {
      (i < axis ? outer : i == axis ? size : inner) *= static_cast<size_t>(whole.shape[i]);
    }
  }
  size_t grain() const { return RowGrain((size + indices.size()) * inner); }
};

void Gather(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const Gathering by(context, context.in(0));
    const T* const in = DataOf<T>(context.in(0));
    T* const out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(by.outer, by.grain(), [&](size_t begin, size_t end) {
      for (size_t o = begin; o < end; ++o) {
        const T* from = in + o * by.size * by.inner;
        T* to = out + o * by.indices.size() * by.inner;
        for (const int64_t index : by.indices) {
          to = std::copy_n(from + static_cast<size_t>(index) * by.inner, by.inner, to);
        }
      }
    });
  });
}

void GatherGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const Gathering by(context, context.out(0));
    const T* const in = DataOf<T>(context.in(0));
    T* const out = DataOf<T>(context.out(0));
    const size_t block = by.size * by.inner;
    context.pool.ParallelFor(by.outer, by.grain(), [&](size_t begin, size_t end) {
      std::fill_n(out + begin * block, (end - begin) * block, T(0));
      for (size_t o = begin; o < end; ++o) {
        const T* from = in + o * by.indices.size() * by.inner;
        for (const int64_t index : by.indices) {
          AddTo(from, out + o * block + static_cast<size_t>(index) * by.inner, by.inner);
          from += by.inner;
        }
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"gather", Gather},
    {"gather_grad", GatherGrad},
};

}  // namespace

std::span<const NamedKernel> GatherKernels() { return kKernels; }

}  // namespace dt
