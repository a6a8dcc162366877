#include "ops/kernel_families.h"
#include "ops/kernel_util.h"
#include "ops/sparse/row_dim.h"

namespace dt {
namespace {

// Rows lie scattered in a large array, so each is prefetched this many rows before its use.
constexpr size_t kRowsAhead = 16;
template <class T, class Dim>
class RowsAhead {
 public:
  RowsAhead(const T* rows, Dim dim, std::span<const uint32_t> order)
      : rows_(rows), dim_(dim), order_(order) {}

  // To be called when row order[i] is used.
  void Ask(size_t i) const {
    if (i + kRowsAhead >= order_.size()) return;
    constexpr size_t kLine = 64;
    const auto* const row =
        reinterpret_cast<const std::byte*>(rows_ + size_t{order_[i + kRowsAhead]} * dim_);
    const size_t bytes = dim_ * sizeof(T);
    for (size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(row + at);
    if (bytes % kLine != 0) __builtin_prefetch(row + bytes - 1);
  }

 private:
  const T* const rows_;
  const Dim dim_;
  const std::span<const uint32_t> order_;
};

template <class T>
void Scale(T factor, const T* __restrict x, T* __restrict out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = factor * x[i];
}

void GatherRows(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const T* rows = DataOf<T>(context.in(0));
    const std::span<const uint32_t> index = context.in(1).as<uint32_t>();
    const bool weighted = BoolAttr(context.node.attrs, "weighted", false);
    const T* weights = weighted ? DataOf<T>(context.in(4)) : nullptr;
    T* out = DataOf<T>(context.out(0));
    WithRowDim(static_cast<size_t>(context.in(0).shape[1]), [&](auto dim) {
      const RowsAhead ahead(rows, dim, index);
      context.pool.ParallelFor(index.size(), RowGrain(dim), [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          ahead.Ask(i);
          Scale(weighted ? weights[i] : T(1), rows + size_t{index[i]} * dim, out + i * dim, dim);
        }
      });
    });
  });
}

// The uses of row u are order[ends[u - 1] .. ends[u]).
void GatherRowsGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const T* dy = DataOf<T>(context.in(0));
    const std::span<const uint32_t> ends = context.in(1).as<uint32_t>();
    const std::span<const uint32_t> order = context.in(2).as<uint32_t>();
    const bool weighted = BoolAttr(context.node.attrs, "weighted", false);
    const T* weights = weighted ? DataOf<T>(context.in(3)) : nullptr;
    T* out = DataOf<T>(context.out(0));
    WithRowDim(static_cast<size_t>(context.out(0).shape[1]), [&](auto dim) {
      const RowsAhead ahead(dy, dim, order);
      context.pool.ParallelFor(ends.size(), kSumRows, [&](size_t begin, size_t end) {
        std::fill_n(out + begin * dim, (end - begin) * dim, T(0));
        size_t use = begin == 0 ? 0 : ends[begin - 1];
        for (size_t u = begin; u < end; ++u) {
          for (; use < ends[u]; ++use) {
            ahead.Ask(use);
            const T weight = weighted ? weights[order[use]] : T(1);
            AddScaled(weight, dy + size_t{order[use]} * dim, out + u * dim, dim);
          }
        }
      });
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
