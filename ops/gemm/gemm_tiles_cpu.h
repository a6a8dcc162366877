// The two ways to the tiles of a product of floats, and what they share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/runtime/task_pool.h"
#include "ops/gemm/gemm_cpu.h"

namespace dt {

// By packed panels, our own. REQUIRES: HasAvx512(), for kBf16 MultipliesBf16().
void PanelTiles(TaskPool& pool, const GemmTask<float>& task, GemmThen<float> then);
// By what oneDNN compiles for a tile, on any processor. REQUIRES: task.room for kBf16; with
// rows_vary at most one of A and B lies turned.
void CompiledTiles(TaskPool& pool, const GemmTask<float>& task, GemmThen<float> then);

// Bytes of task.room that they use.
size_t PanelRoom(const GemmTask<float>& task);
size_t CompiledRoom(const GemmTask<float>& task);

inline size_t DivideUp(size_t n, size_t by) { return (n + by - 1) / by; }

struct TileSize {
  size_t rows, cols;
  size_t step = 1;  // Rows are filled up to multiples of it.

  size_t Filled(size_t n) const { return DivideUp(n, step) * step; }
};

// Room of this thread, for a tile's factors and for a tile that nobody stores as it is.
enum class Purpose : uint8_t { kRows, kColumns, kTile, kPiece };
template <class T, Purpose>
T* TileRoom(size_t count) {
  thread_local std::vector<T> room;
  if (room.size() < count) room.resize(count);
  return room.data();
}

// Calls make(tile) and then(tile) for each; make() has room for filled up rows.
template <class Make>
void EachTile(TaskPool& pool, const GemmTask<float>& task, const TileSize& size,
              GemmThen<float> then, const Make& make) {
  const GemmShape& shape = task.shape;
  const size_t across = DivideUp(shape.n, size.cols);
  pool.ParallelFor(DivideUp(shape.m, size.rows) * across, 1, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      const size_t i = t / across * size.rows, j = t % across * size.cols;
      GemmTile<float> tile{i, j, std::min(size.rows, shape.m - i),
                           std::min(size.cols, shape.n - j)};
      const size_t rows = size.Filled(tile.rows);
      const bool in_place = task.c != nullptr && across == 1 && rows == tile.rows;
      tile.values =
          in_place ? task.c + i * shape.n : TileRoom<float, Purpose::kTile>(rows * tile.cols);
      if (shape.k > 0) make(tile);
      if (shape.k == 0) std::fill_n(tile.values, tile.rows * tile.cols, 0.0f);
      then(tile);
      for (size_t r = 0; !in_place && task.c != nullptr && r < tile.rows; ++r) {
        std::copy_n(tile.row_of(r), tile.cols, task.c + (i + r) * shape.n + j);
      }
    }
  });
}

}  // namespace dt
