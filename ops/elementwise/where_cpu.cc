#include <array>

#include "ops/kernel_families.h"
#include "ops/strided.h"

namespace dt {
namespace {

constexpr size_t kOperands = 3;

// One row; an operand advances with it or stays.
template <class T>
using RowFunction = void (*)(const T* condition, const T* a, const T* b, std::span<T> row);
template <class T, bool kConditionMoves, bool kAMoves, bool kBMoves>
void Row(const T* __restrict condition, const T* __restrict a, const T* __restrict b,
         std::span<T> row) {
  T* __restrict out = row.data();
  for (size_t i = 0; i < row.size(); ++i) {
    const T left = a[kAMoves ? i : 0], right = b[kBMoves ? i : 0];
    out[i] = condition[kConditionMoves ? i : 0] != T(0) ? left : right;
  }
}
template <class T>
constexpr std::array<RowFunction<T>, 8> kRows = {
    Row<T, false, false, false>, Row<T, false, false, true>, Row<T, false, true, false>,
    Row<T, false, true, true>,   Row<T, true, false, false>, Row<T, true, false, true>,
    Row<T, true, true, false>,   Row<T, true, true, true>};

// The dimensions of the output and the strides of the three operands. Adjacent dimensions that all
// operands traverse with one stride are joined, so that rows are long.
struct Walk {
  LoopDims dims;
  std::array<LoopDims, kOperands> strides;

  explicit Walk(const KernelContext& context) : dims(RightAligned(context.out(0).shape)) {
    for (size_t k = 0; k < kOperands; ++k) {
      strides[k] = StridesOf(RightAligned(context.in(k).shape));
    }
    size_t at = kLoopRank - 1;
    for (size_t i = kLoopRank - 1; i-- > 0;) {
      if (dims[i] == 1) continue;
      if (dims[at] != 1 && Joins(i, at)) {
        dims[at] *= dims[i];
        continue;
      }
      if (dims[at] != 1) --at;
      dims[at] = dims[i];
      for (LoopDims& each : strides) each[at] = each[i];
    }
    for (size_t i = 0; i < at; ++i) dims[i] = 1;
  }

  bool Joins(size_t outer, size_t inner) const {
    return std::ranges::all_of(
        strides, [&](const LoopDims& s) { return s[outer] == s[inner] * dims[inner]; });
  }

  // The offsets of the operands at the start of row `row`.
  std::array<int64_t, kOperands> Offsets(size_t row) const {
    std::array<int64_t, kOperands> at{};
    auto rest = static_cast<int64_t>(row);
    for (size_t d = kLoopRank - 1; d-- > 0 && rest > 0;) {
      const int64_t index = rest % dims[d];
      rest /= dims[d];
      for (size_t k = 0; k < kOperands; ++k) at[k] += index * strides[k][d];
    }
    return at;
  }
};

void Where(KernelContext& context) {
  OnFloat(context.out(0).dtype, [&]<class T>(T) {
    const std::span<T> out = context.out(0).as<T>();
    if (out.empty()) return;
    const Walk walk(context);
    const std::array<const T*, kOperands> from = {
        DataOf<T>(context.in(0)), DataOf<T>(context.in(1)), DataOf<T>(context.in(2))};
    const auto moves = [&](size_t k) { return walk.strides[k].back() != 0 ? size_t{1} : 0; };
    const RowFunction<T> fill_row = kRows<T>[4 * moves(0) + 2 * moves(1) + moves(2)];
    const auto length = static_cast<size_t>(walk.dims.back());
    context.pool.ParallelFor(out.size() / length, RowGrain(length), [&](size_t begin, size_t end) {
      for (size_t row = begin; row < end; ++row) {
        const auto at = walk.Offsets(row);
        fill_row(from[0] + at[0], from[1] + at[1], from[2] + at[2],
                 out.subspan(row * length, length));
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {{"where", Where}};

}  // namespace

std::span<const NamedKernel> WhereKernels() { return kKernels; }

}  // namespace dt
