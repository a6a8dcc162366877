#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

void GatherRows(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const size_t dim = static_cast<size_t>(context.in(0).shape[1]);
    const T* rows = DataOf<T>(context.in(0));
    const std::span<const uint32_t> index = context.in(1).as<uint32_t>();
    const bool weighted = BoolAttr(context.node.attrs, "weighted", false);
    const T* weights = weighted ? DataOf<T>(context.in(4)) : nullptr;
    T* out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(index.size(), RowGrain(dim), [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const T* row = rows + size_t{index[i]} * dim;
        T* to = out + i * dim;
        const T weight = weighted ? weights[i] : T(1);
        for (size_t d = 0; d < dim; ++d) to[d] = weight * row[d];
      }
    });
  });
}

// The uses of row u are order[ends[u - 1] .. ends[u]).
void GatherRowsGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const size_t dim = static_cast<size_t>(context.out(0).shape[1]);
    const T* dy = DataOf<T>(context.in(0));
    const std::span<const uint32_t> ends = context.in(1).as<uint32_t>();
    const std::span<const uint32_t> order = context.in(2).as<uint32_t>();
    const bool weighted = BoolAttr(context.node.attrs, "weighted", false);
    const T* weights = weighted ? DataOf<T>(context.in(3)) : nullptr;
    T* out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(ends.size(), kSumRows, [&](size_t begin, size_t end) {
      std::fill_n(out + begin * dim, (end - begin) * dim, T(0));
      size_t use = begin == 0 ? 0 : ends[begin - 1];
      for (size_t u = begin; u < end; ++u) {
        for (; use < ends[u]; ++use) {
          const T weight = weighted ? weights[order[use]] : T(1);
          AddScaled(weight, dy + size_t{order[use]} * dim, out + u * dim, dim);
        }
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"gather_rows", GatherRows},
    {"gather_rows_grad", GatherRowsGrad},
};

}  // namespace

std::span<const NamedKernel> GatherRowsKernels() { return kKernels; }

}  // namespace dt
