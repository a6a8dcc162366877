#include <algorithm>
#include <limits>

#include "common/base/pool_allocator.h"
#include "common/layout/layout.h"
#include "ops/kernel_families.h"
#include "ops/kernel_util.h"
#include "ops/reduce/top_lists.h"

namespace dt {
namespace {

template <class T>
T KeyOf(T x) {
  return x == x ? x : -std::numeric_limits<T>::infinity();
}

// Finds the positions of the found.size() largest elements of x[0 .. n), by insertion.
template <class T>
void FindLargest(const T* x, uint32_t n, std::span<uint32_t> found) {
  size_t count = 0;
  for (uint32_t j = 0; j < n; ++j) {
    const T key = KeyOf(x[j]);
    if (count == found.size() && !(key > KeyOf(x[found.back()]))) continue;
    size_t at = count < found.size() ? count++ : count - 1;
    for (; at > 0 && key > KeyOf(x[found[at - 1]]); --at) found[at] = found[at - 1];
    found[at] = j;
  }
}

void TopK(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const size_t k = AsMatrix(context.out(0)).cols;
    const TopLists lists(context.node.attrs, static_cast<int64_t>(shape.cols));
    const T* const in = DataOf<T>(context.in(0));
    T* const out = DataOf<T>(context.out(0));
    uint32_t* const positions = DataOf<uint32_t>(context.out(1));
    const auto one_list = [&](const T* x, size_t length, size_t at) {
      const std::span<uint32_t> found(positions + at, std::min(k, length));
      FindLargest(x, static_cast<uint32_t>(length), found);
      for (size_t i = 0; i < found.size(); ++i) out[at + i] = x[found[i]];
      for (size_t i = found.size(); i < k; ++i) {
        out[at + i] = T(0);
        positions[at + i] = static_cast<uint32_t>(length);
      }
    };
    context.pool.ParallelFor(shape.rows, RowGrain(shape.cols * k), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        const T* x = in + r * shape.cols;
        size_t at = r * lists.lengths().size() * k;
        for (const int64_t length : lists.lengths()) {
          one_list(x, static_cast<size_t>(length), at);
          x += length, at += k;
        }
      }
    });
  });
}

void TopKGrad(KernelContext& context) {
  OnFloat(context.in(1).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.out(0));
    const size_t k = AsMatrix(context.in(1)).cols;
    const TopLists lists(context.node.attrs, static_cast<int64_t>(shape.cols));
    const uint32_t* const positions = DataOf<uint32_t>(context.in(0));
    const T* const dy = DataOf<T>(context.in(1));
    T* const dx = DataOf<T>(context.out(0));
    context.pool.ParallelFor(shape.rows, RowGrain(shape.cols), [&](size_t begin, size_t end) {
      std::fill_n(dx + begin * shape.cols, (end - begin) * shape.cols, T(0));
      for (size_t r = begin; r < end; ++r) {
        T* list = dx + r * shape.cols;
        size_t i = r * lists.lengths().size() * k;
        for (const int64_t length : lists.lengths()) {
          for (const size_t list_end = i + k; i < list_end; ++i) {
            if (positions[i] < length) list[positions[i]] = dy[i];
          }
          list += length;
        }
      }
    });
  });
}

// The candidates of one row: the largest of its parts.
struct Candidates {
  int64_t size, parts;
  size_t each;  // Candidates of a part.

  Candidates(const Attrs& attrs, const TensorView& positions)
      : size(IntAttr(attrs, "size", 0)),
        parts(positions.dim(positions.shape.size() - 2)),
        each(static_cast<size_t>(positions.dim(positions.shape.size() - 1))) {}
  size_t count() const { return static_cast<size_t>(parts) * each; }
  // The position in the row; `size` for a candidate that only fills up.
  uint32_t PlaceOf(size_t candidate, uint32_t position) const {
    const Range part = EvenPart({0, size}, parts, static_cast<int64_t>(candidate / each));
    const bool real = position < part.size();
    return static_cast<uint32_t>(real ? part.begin + position : size);
  }
};

void MergeTopK(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const Candidates of(context.node.attrs, context.in(1));
    const size_t n = of.count(), k = AsMatrix(context.out(0)).cols;
    const T* const largest = DataOf<T>(context.in(0));
    const uint32_t* const positions = DataOf<uint32_t>(context.in(1));
    T* const out = DataOf<T>(context.out(0));
    uint32_t* const chosen = DataOf<uint32_t>(context.out(1));
    const size_t rows = AsMatrix(context.out(0)).rows;
    context.pool.ParallelFor(rows, RowGrain(n * k), [&](size_t begin, size_t end) {
      PooledVector<T> values;
      PooledVector<uint32_t> places;
      PooledVector<uint32_t> found(k);
      for (size_t r = begin; r < end; ++r) {
        values.clear(), places.clear();
        for (size_t j = 0; j < n; ++j) {
          const uint32_t place = of.PlaceOf(j, positions[r * n + j]);
          if (place == of.size) continue;
          values.push_back(largest[r * n + j]);
          places.push_back(place);
        }
        FindLargest(values.data(), static_cast<uint32_t>(values.size()), found);
        for (size_t i = 0; i < k; ++i) {
          out[r * k + i] = values[found[i]];
          chosen[r * k + i] = places[found[i]];
        }
      }
    });
  });
}

void MergeTopKGrad(KernelContext& context) {
  OnFloat(context.in(2).dtype, [&]<class T>(T) {
    const Candidates of(context.node.attrs, context.in(0));
    const size_t n = of.count(), k = AsMatrix(context.in(1)).cols;
    const uint32_t* const positions = DataOf<uint32_t>(context.in(0));
    const std::span<const uint32_t> chosen = context.in(1).as<uint32_t>();
    const T* const dy = DataOf<T>(context.in(2));
    T* const dx = DataOf<T>(context.out(0));
    const size_t rows = AsMatrix(context.in(1)).rows;
    context.pool.ParallelFor(rows, RowGrain(n * k), [&](size_t begin, size_t end) {
      for (size_t at = begin * n; at < end * n; ++at) {
        const size_t r = at / n;
        const uint32_t place = of.PlaceOf(at % n, positions[at]);
        const auto own = chosen.subspan(r * k, k);
        const auto found = std::ranges::find(own, place);
        dx[at] = found == own.end() ? T(0) : dy[r * k + static_cast<size_t>(found - own.begin())];
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"top_k", TopK},
    {"top_k_grad", TopKGrad},
    {"merge_top_k", MergeTopK},
    {"merge_top_k_grad", MergeTopKGrad},
};

}  // namespace

std::span<const NamedKernel> TopKKernels() { return kKernels; }

}  // namespace dt
