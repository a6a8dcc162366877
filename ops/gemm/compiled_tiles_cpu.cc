#include <algorithm>
#include <span>

#include "common/base/check.h"
#include "ops/gemm/compiled_product_cpu.h"
#include "ops/gemm/gemm_tiles_cpu.h"

namespace dt {
namespace {

size_t Quarter(size_t n, size_t of) { return DivideUp(DivideUp(n, 4), of) * of; }
// Tall results are cut into blocks of 256 rows, whose operands stay in the second-level cache.
// Others are cut into about four blocks, in multiples of kTileRows or of a vector's 16 floats. A
// few blocks of wide rows are cut again by columns, so that more processors have work.
TileSize TileFor(const GemmShape& shape) {
  if (shape.m < kTileRows) return {shape.m, std::max<size_t>(64, Quarter(shape.n, 16))};
  const size_t rows = Quarter(shape.m, shape.transpose_a ? 16 : kTileRows);
  const size_t tall = shape.m >= 1024 ? 256 : rows;
  const bool few = DivideUp(shape.m, tall) < 8;
  return {tall, few && shape.n > 768 ? 512 : shape.n};
}

// ------------------------------------------------------------ factors

// One factor of a product: rows of op(A) or columns of op(B), each a line of k numbers. Lines are
// stored one after the other, or with `as_columns` as the columns of [k, lines].
struct Factor {
  const uint16_t* bf16 = nullptr;  // If null, numbers are rounded from `wide`.
  const float* wide = nullptr;
  size_t lines = 0, k = 0;
  bool as_columns = false;

  void Take(size_t at, size_t count, uint16_t* to) const {
    if (bf16 != nullptr) {
      std::copy_n(bf16 + at, count, to);
    } else {
      RoundToBf16({wide + at, count}, to);
    }
  }
};

// Numbers [from, from + k) of lines [first, first + count), padded to `padded_count` lines of
// `padded_k` numbers. Padding of k is zero; padding lines may hold anything.
struct Part {
  size_t first, count, padded_count;
  size_t from, k, padded_k;
};
// Returns the part densely packed, in its stored order. REQUIRES: whole lines, unless stored as
// columns.
template <Purpose purpose>
const uint16_t* LinesOf(const Factor& factor, const Part& part) {
  const bool padded = part.count != part.padded_count || part.k != part.padded_k;
  const bool together = !factor.as_columns || part.count == factor.lines;
  const size_t at =
      factor.as_columns ? part.from * factor.lines + part.first : part.first * factor.k;
  if (together && !padded && factor.bf16 != nullptr) return factor.bf16 + at;
  const WorkSpan span(kPackingWork);
  kPackingWork.Count(2 * part.count * part.k * sizeof(uint16_t));
  uint16_t* const to = TileBuffer<uint16_t, purpose>(part.padded_count * part.padded_k);
  if (!factor.as_columns) {
    DT_CHECK(part.from == 0 && part.k == factor.k && part.padded_k == part.k);
    factor.Take(at, part.count * part.k, to);
    return to;
  }
  for (size_t p = 0; p < part.k; ++p) {
    factor.Take(at + p * factor.lines, part.count, to + p * part.padded_count);
  }
  std::fill(to + part.k * part.padded_count, to + part.padded_k * part.padded_count, uint16_t{0});
  return to;
}

Factor FactorA(const GemmTask<float>& task) {
  return {.bf16 = task.bf16_a,
          .wide = task.a,
          .lines = task.shape.m,
          .k = task.shape.k,
          .as_columns = task.shape.transpose_a};
}

// B is rounded once for all tiles.
Factor FactorB(TaskPool& pool, const GemmTask<float>& task) {
  const GemmShape& shape = task.shape;
  Factor b{.bf16 = task.bf16_b, .wide = task.b, .lines = shape.n, .k = shape.k};
  b.as_columns = !shape.transpose_b;
  if (b.bf16 != nullptr) return b;
  constexpr size_t kPiece = 16384;
  auto* const to = reinterpret_cast<uint16_t*>(task.workspace);
  const WorkSpan span(kPackingWork);
  kPackingWork.Count(6 * shape.k * shape.n);
  pool.ParallelFor(shape.k * shape.n, kPiece,
                   [&](size_t begin, size_t end) { b.Take(begin, end - begin, to + begin); });
  b.bf16 = to;
  return b;
}

}  // namespace

size_t CompiledWorkspace(const GemmTask<float>& task) {
  return task.shape.k * task.shape.n * sizeof(uint16_t);
}

// ------------------------------------------------------------ tiles

// If both factors are stored as columns, sums are made in pieces, so that the packed lines of a
// tile stay small. If the number of rows varies (A's rows, or the terms of each sum), kernels are
// compiled only for multiples of kStep.
void CompiledTiles(TaskPool& pool, const GemmTask<float>& task) {
  constexpr size_t kStep = 32, kTerms = 256;
  const GemmShape& shape = task.shape;
  const Factor a = FactorA(task), b = FactorB(pool, task);
  const bool in_pieces = a.as_columns && b.as_columns;
  TileSize size = TileFor(shape);
  if (task.rows_vary && !in_pieces) size.step = kStep;
  const size_t piece = in_pieces ? kTerms : shape.k;
  EachTile(pool, shape, size, [&](const TileArea& tile) {
    const size_t rows = size.Filled(tile.rows), count = tile.rows * tile.cols;
    const bool in_place = task.c != nullptr && tile.cols == shape.n && rows == tile.rows;
    float* const values = in_place ? task.c + tile.row * shape.n
                                   : TileBuffer<float, Purpose::kTile>(rows * tile.cols);
    if (shape.k == 0) std::fill_n(values, count, 0.0f);
    for (size_t from = 0; from < shape.k; from += piece) {
      const size_t k = std::min(piece, shape.k - from);
      const size_t padded_k = in_pieces && task.rows_vary ? DivideUp(k, kStep) * kStep : k;
      float* const to = from == 0 ? values : TileBuffer<float, Purpose::kPiece>(count);
      Multiply(
          {.type = FactorType::kBf16,
           .m = rows,
           .n = tile.cols,
           .k = padded_k,
           .transpose_a = shape.transpose_a,
           .transpose_b = shape.transpose_b},
          {LinesOf<Purpose::kRows>(a, {tile.row, tile.rows, rows, from, k, padded_k}),
           LinesOf<Purpose::kColumns>(b, {tile.col, tile.cols, tile.cols, from, k, padded_k}), to});
      for (size_t i = 0; from > 0 && i < count; ++i) values[i] += to[i];
    }
    const WorkSpan span(kEpilogueWork);
    CountEpilogue(task, tile);
    for (size_t r = 0; r < tile.rows; ++r) {
      FinishRow(task, tile.row + r, tile.col, tile.cols, values + r * tile.cols);
    }
  });
}

}  // namespace dt
