#include <utility>

#include "ops/gemm/gemm_tiles_cpu.h"
#include "ops/gemm/panel_product_cpu.h"

namespace dt {
namespace {

// A tile reads B's panels from outer caches, so tall results have tiles of many rows. If A is
// stored as columns, a tile packs its rows, so there are only about eight of all columns, and the
// last ones have fewer rows.
TileSize TileFor(const PanelProduct& by, const GemmShape& shape, bool packed_once) {
  constexpr size_t kColsMax = 512, kVectorCols = 16, kTiles = 8, kTall = 1024;
  const size_t cols = std::min(shape.n, kColsMax);
  if (shape.m <= kTileRows) {
    return {shape.m, std::min(cols, DivideUp(DivideUp(shape.n, 4), kVectorCols) * kVectorCols)};
  }
  if (!packed_once) {
    const size_t quarter = DivideUp(DivideUp(shape.m, 4), kTileRows) * kTileRows;
    return {std::min(by.tile_rows, quarter), cols};
  }
  if (!shape.transpose_a) {
    const bool tall = shape.m >= kTall;
    return {.rows = tall ? by.tile_rows : kTileRows,
            .cols = cols,
            .least_rows = kTileRows,
            .least_cols = kColsMax / 4,
            .row_step = kTileRows};
  }
  const size_t tiles = kTiles * DivideUp(shape.m, kTiles * kTileRows);
  const size_t blocks = DivideUp(DivideUp(shape.m, tiles), by.block_rows);
  return {.rows = blocks * by.block_rows,
          .cols = cols,
          .least_rows = DivideUp(blocks, 4) * by.block_rows,
          .least_cols = cols,
          .row_step = by.block_rows};
}

// The gradient of a weight with few columns is computed transposed, with few rows, so that vector
// lanes run along its long dimension.
bool IsComputedTransposed(const GemmShape& shape) {
  return shape.transpose_a && !shape.transpose_b && shape.n <= 32 && shape.m >= 64;
}

}  // namespace

const PanelProduct& PanelsFor(const GemmTask<float>& task) {
  const bool bf16 = task.math == GemmMath::kBf16 || task.epilogue.bf16_c != nullptr;
  return (bf16 ? MultipliesBf16() : HasAvx512()) ? kAvx512Product : kAvx2Product;
}

size_t PanelWorkspace(const GemmTask<float>& task, const PanelProduct& by) {
  const GemmShape& shape = task.shape;
  if (IsComputedTransposed(shape)) return shape.m * shape.n * sizeof(float);
  if (shape.m <= kTileRows) return 0;
  return by.packed_lines(TypeOf(task), shape.n, shape.k) * sizeof(PackedLine);
}

void PanelTiles(TaskPool& pool, const GemmTask<float>& task, const PanelProduct& by) {
  const GemmShape& shape = task.shape;
  if (IsComputedTransposed(shape) && task.workspace != nullptr) {
    GemmTask<float> transposed = task;
    transposed.shape = {.m = shape.n, .n = shape.m, .k = shape.k, .transpose_a = true};
    std::swap(transposed.a, transposed.b);
    std::swap(transposed.bf16_a, transposed.bf16_b);
    transposed.c = reinterpret_cast<float*>(std::exchange(transposed.workspace, nullptr));
    PanelTiles(pool, transposed, by);
    return pool.ParallelFor(shape.m, kTileRows, [&](size_t begin, size_t end) {
      for (size_t at = begin * shape.n; at < end * shape.n; ++at) {
        task.c[at] = transposed.c[at % shape.n * shape.m + at / shape.n];
      }
    });
  }
  const FactorType type = TypeOf(task);
  const PanelFactor a{task.a, task.bf16_a, shape.m, shape.k, shape.transpose_a};
  const PanelFactor b{task.b, task.bf16_b, shape.n, shape.k, !shape.transpose_b};
  auto* const packed =
      shape.m > kTileRows ? reinterpret_cast<PackedLine*>(task.workspace) : nullptr;
  if (packed != nullptr) {
    pool.ParallelFor(by.packed_parts(type, shape.k), 1, [&](size_t begin, size_t end) {
      for (size_t part = begin; part < end; ++part) by.pack_part(type, b, part, packed);
    });
  }
  EachTile(pool, shape, TileFor(by, shape, packed != nullptr),
           [&](const TileArea& tile) { by.multiply(task, a, b, packed, tile); });
}

}  // namespace dt
