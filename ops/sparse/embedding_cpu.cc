#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

// Finds the row of the weight that an id names.
class RowsNamed {
 public:
  RowsNamed(KernelContext& context, const TensorView& ids, int64_t rows)
      : ids_(ids.as<uint32_t>()), rows_(static_cast<uint64_t>(rows)) {
    const Attrs& attrs = context.node.attrs;
    if (const auto first = attrs.find("first"); first != attrs.end()) {
      first_ = static_cast<uint64_t>(std::get<std::vector<int64_t>>(first->second)[0]);
    }
    const auto found = attrs.find("manual_split");
    if (found == attrs.end()) return;
    const auto& split = std::get<std::vector<int64_t>>(found->second);
    ends_ = Scratch<uint64_t>(context, split.size() + 1);
    ends_[0] = 0;
    for (size_t f = 0; f < split.size(); ++f) {
      ends_[f + 1] = ends_[f] + static_cast<uint64_t>(split[f]);
    }
  }

  size_t count() const { return ids_.size(); }
  static constexpr uint64_t kNoRow = ~uint64_t{0};
  // kNoRow if the weight here does not have it.
  uint64_t operator[](size_t i) const {
    const uint64_t id = ids_[i];
    if (ends_.empty()) return id >= first_ && id - first_ < rows_ ? id - first_ : kNoRow;
    const size_t field = i % (ends_.size() - 1);
    const uint64_t row = ends_[field] + id;
    return row < ends_[field + 1] ? row : kNoRow;
  }

 private:
  const std::span<const uint32_t> ids_;
  const uint64_t rows_;
  uint64_t first_ = 0;
  std::span<uint64_t> ends_;  // Where the rows of each field begin, and end; empty: no fields.
};

void Embedding(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const RowsNamed named(context, context.in(1), context.in(0).dim(0));
    const auto dim = static_cast<size_t>(context.in(0).dim(1));
    const T* const rows = DataOf<T>(context.in(0));
    T* const out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(named.count(), RowGrain(dim), [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const uint64_t row = named[i];
        if (row == RowsNamed::kNoRow) {
          std::fill_n(out + i * dim, dim, T(0));
        } else {
          std::copy_n(rows + row * dim, dim, out + i * dim);
        }
      }
    });
  });
}

// Each piece of work reads all ids, and adds the gradients of its own rows.
void EmbeddingGrad(KernelContext& context) {
  constexpr size_t kPieces = 8;
  OnFloat(context.in(1).dtype, [&]<class T>(T) {
    const TensorView& grad = context.out(0);
    const RowsNamed named(context, context.in(0), grad.dim(0));
    const auto rows = static_cast<size_t>(grad.dim(0)), dim = static_cast<size_t>(grad.dim(1));
    const T* const dy = DataOf<T>(context.in(1));
    T* const out = DataOf<T>(grad);
    const size_t grain = std::max(RowGrain(dim), (rows + kPieces - 1) / kPieces);
    context.pool.ParallelFor(rows, grain, [&](size_t begin, size_t end) {
      std::fill_n(out + begin * dim, (end - begin) * dim, T(0));
      for (size_t i = 0; i < named.count(); ++i) {
        const uint64_t row = named[i];
        if (row >= begin && row < end) AddTo(dy + i * dim, out + row * dim, dim);
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"embedding", Embedding},
    {"embedding_grad", EmbeddingGrad},
};

}  // namespace

std::span<const NamedKernel> EmbeddingKernels() { return kKernels; }

}  // namespace dt
