#include "ops/gemm/gemm_tiles_cpu.h"
#include "ops/gemm/panel_product_cpu.h"

namespace dt {
namespace {

FactorType TypeOf(const GemmTask<float>& task) {
  return task.math == GemmMath::kFp32 ? FactorType::kFp32 : FactorType::kBf16;
}

// A tile streams B's panels from caches further away: tall results have tiles of many rows. If A
// lies across, and B is packed once for all tiles, about eight of them share the rows evenly.
TileSize TileFor(const GemmShape& shape, bool packed_once) {
  constexpr size_t kColsMax = 8 * kPanelCols, kTiles = 8, kTall = 1024;
  const size_t cols = std::min(shape.n, kColsMax);
  if (shape.m < kTileRows) {
    return {shape.m, std::min(cols, DivideUp(DivideUp(shape.n, 4), kPanelCols) * kPanelCols)};
  }
  if (!packed_once) {
    const size_t quarter = DivideUp(DivideUp(shape.m, 4), kTileRows) * kTileRows;
    return {std::min(4 * kTileRows, quarter), cols};
  }
  if (!shape.transpose_a) return {(shape.m < kTall ? 1 : 4) * kTileRows, cols};
  const size_t tiles = kTiles * DivideUp(shape.m, kTiles * kTileRows);
  return {DivideUp(DivideUp(shape.m, tiles), kBlockRows) * kBlockRows, cols};
}

}  // namespace

size_t PanelRoom(const GemmTask<float>& task) {
  return PackedLines(TypeOf(task), task.shape.n, task.shape.k) * sizeof(PackedLine);
}

void PanelTiles(TaskPool& pool, const GemmTask<float>& task, GemmThen<float> then) {
  const GemmShape& shape = task.shape;
  const FactorType type = TypeOf(task);
  const PanelFactor a{task.a, task.bf16_a, shape.m, shape.k, shape.transpose_a};
  const PanelFactor b{task.b, task.bf16_b, shape.n, shape.k, !shape.transpose_b};
  auto* const packed = reinterpret_cast<PackedLine*>(task.room);
  if (packed != nullptr) {
    pool.ParallelFor(PackedParts(type, shape.k), 1, [&](size_t begin, size_t end) {
      for (size_t part = begin; part < end; ++part) PackPart(type, b, part, packed);
    });
  }
  EachTile(pool, task, TileFor(shape, packed != nullptr), then,
           [&](const GemmTile<float>& tile) { MultiplyPanels(type, a, b, packed, tile); });
}

}  // namespace dt
