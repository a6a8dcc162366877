// The two implementations of a product of floats by tiles, and code that they share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "common/base/pool_allocator.h"
#include "common/runtime/task_pool.h"
#include "common/runtime/work_span.h"
#include "ops/gemm/gemm_cpu.h"

namespace dt {

// The parts of a product, for profiles.
inline constinit WorkKind kProductWork{"products"};
inline constinit WorkKind kPackingWork{"products: packing"};
inline constinit WorkKind kEpilogueWork{"products: epilogues"};

struct PanelProduct;
// The fastest one that this processor can run for the task. (One with AVX-512 but without bf16 uses
// AVX2 for bf16.)
const PanelProduct& PanelsFor(const GemmTask<float>& task);
// Computes tiles from packed panels. REQUIRES: as Gemm, and as `by` says.
void PanelTiles(TaskPool& pool, const GemmTask<float>& task, const PanelProduct& by);
// Computes tiles with kernels that oneDNN compiles. REQUIRES: as Gemm; kBf16, MultipliesBf16(),
// task.workspace.
void CompiledTiles(TaskPool& pool, const GemmTask<float>& task);

// Bytes of task.workspace that each of them uses.
size_t PanelWorkspace(const GemmTask<float>& task, const PanelProduct& by);
size_t CompiledWorkspace(const GemmTask<float>& task);

inline size_t DivideUp(size_t n, size_t by) { return (n + by - 1) / by; }

// The rows of a tile are a multiple of it, unless A is transposed or there are fewer rows.
inline constexpr size_t kTileRows = 64;
static_assert(kTileRows % kSumRows == 0);

struct TileSize {
  size_t rows, cols;
  size_t step = 1;  // Rows are padded to multiples of it.
  // The smallest tile (no rows: all tiles are alike), and what the rows of others are multiples of.
  size_t least_rows = 0, least_cols = 0, row_step = 1;

  size_t Filled(size_t n) const { return DivideUp(n, step) * step; }
};

// This thread's memory for a tile's factors, or for a tile that is not stored as it is.
enum class Purpose : uint8_t { kRows, kColumns, kTile, kPiece };
template <class T, Purpose>
T* TileBuffer(size_t count) {
  thread_local std::vector<T> buffer;
  if (buffer.size() < count) buffer.resize(count);
  return buffer.data();
}

// A part of C.
struct TileArea {
  size_t row = 0, col = 0, rows = 0, cols = 0;
};
// The tiles of C, in the order in which threads take them: half of a thread's share of the rows
// that are left, but at most size.rows, so that the last ones are small, and all threads end at
// about the same time (guided self-scheduling: Polychronopoulos and Kuck, 1987). Where rows cannot
// be fewer, a tile has fewer columns.
PooledVector<TileArea> TilesOf(const GemmShape& shape, const TileSize& size, size_t threads);
// Calls body(area) for each tile, in parallel on the pool. Each thread takes the next tile when it
// has done one, so that threads which others hold up do fewer, and all end at about the same time.
template <class Body>
void EachTile(TaskPool& pool, const GemmShape& shape, const TileSize& size, const Body& body) {
  const PooledVector<TileArea> tiles = TilesOf(shape, size, pool.threads());
  std::atomic<size_t> next = 0;
  pool.ParallelFor(std::min<size_t>(pool.threads(), tiles.size()), 1, [&](size_t, size_t) {
    const WorkSpan span(kProductWork);
    for (size_t t = next++; t < tiles.size(); t = next++) body(tiles[t]);
  });
}

// Counts the bytes that the epilogue of some elements of C reads and writes.
inline void CountEpilogue(const GemmTask<float>& task, const TileArea& area) {
  const GemmEpilogue<float>& of = task.epilogue;
  if (!of.any()) return;
  const size_t floats = (task.c != nullptr) + (of.above0 != nullptr);
  const size_t bf16s = (of.bf16_c != nullptr) + (of.bf16_above0 != nullptr);
  kEpilogueWork.Count(area.rows * area.cols * (4 * floats + 2 * bf16s));
}

template <class Y, class T>
void KeepAbove0(const Y* __restrict y, T scale, T* __restrict values, size_t count) {
  for (size_t i = 0; i < count; ++i) values[i] = IsAbove0(y[i]) ? values[i] * scale : T(0);
}

// Applies the epilogue to `count` elements of a row of C, whose sums are `values`, and stores them.
template <class T>
void FinishRow(const GemmTask<T>& task, size_t row, size_t col, size_t count, T* values) {
  const GemmEpilogue<T>& epilogue = task.epilogue;
  const size_t at = row * task.shape.n + col;
  for (size_t i = 0; epilogue.bias != nullptr && i < count; ++i)
    values[i] += epilogue.bias[col + i];
  for (size_t i = 0; epilogue.relu && i < count; ++i)
    values[i] = values[i] > T(0) ? values[i] : T(0);
  const T scale = epilogue.scale;
  if (epilogue.above0 != nullptr) KeepAbove0(epilogue.above0 + at, scale, values, count);
  if (epilogue.bf16_above0 != nullptr) KeepAbove0(epilogue.bf16_above0 + at, scale, values, count);
  if (epilogue.sums.parts != nullptr) {
    T* const sums = epilogue.sums.PieceOf(row) + col;
    if (row % kSumRows == 0) std::fill_n(sums, count, T(0));
    for (size_t i = 0; i < count; ++i) sums[i] += values[i];
  }
  if constexpr (std::is_same_v<T, float>) {
    if (epilogue.bf16_c != nullptr) StoreBf16({values, count}, epilogue.bf16_c + at);
  }
  if (task.c != nullptr && task.c + at != values) std::copy_n(values, count, task.c + at);
}

}  // namespace dt
