#include "ops/gemm/gemm_cpu.h"

#include "common/base/check.h"
#include "common/base/float_formats.h"
#include "ops/gemm/compiled_product_cpu.h"
#include "ops/gemm/gemm_tiles_cpu.h"

namespace dt {

PooledVector<TileArea> TilesOf(const GemmShape& shape, const TileSize& size, size_t threads) {
  PooledVector<TileArea> tiles;
  for (size_t row = 0; row < shape.m;) {
    const size_t left = shape.m - row, share = DivideUp(left, 2 * threads);
    size_t rows = size.rows, cols = size.cols;
    if (size.least_rows > 0 && share < rows) {
      rows = std::max(DivideUp(share, size.row_step) * size.row_step, size.least_rows);
      cols = std::min(cols, DivideUp(cols * share, rows * size.least_cols) * size.least_cols);
    }
    rows = std::min(rows, left);
    for (size_t col = 0; col < shape.n; col += cols) {
      tiles.push_back({row, col, rows, std::min(cols, shape.n - col)});
    }
    row += rows;
  }
  return tiles;
}

namespace {

// oneDNN uses the tile units (AMX) that some processors have for bf16.
bool GoesByPanels(const GemmTask<float>& task) {
  return task.math == GemmMath::kFp32 || !HasTileUnits();
}

constexpr size_t kAlignment = 64;

// Scratch memory that begins at a cache line.
std::byte* AlignedScratch(std::vector<std::byte>& scratch, size_t bytes) {
  if (scratch.size() < bytes + kAlignment) scratch.resize(bytes + kAlignment);
  const size_t past = reinterpret_cast<uintptr_t>(scratch.data()) % kAlignment;
  return scratch.data() + (kAlignment - past) % kAlignment;
}

// Sums of no terms, with the epilogue: a device's part of a product may be empty.
void FinishZeros(TaskPool& pool, const GemmTask<float>& task) {
  const GemmShape& shape = task.shape;
  pool.ParallelFor(shape.m, kTileRows, [&](size_t begin, size_t end) {
    float* const zeros = TileBuffer<float, Purpose::kTile>(shape.n);
    for (size_t r = begin; r < end; ++r) {
      std::fill_n(zeros, shape.n, 0.0f);
      FinishRow(task, r, 0, shape.n, zeros);
    }
  });
}

}  // namespace

void StoreBf16(std::span<const float> from, uint16_t* to) {
  if (MultipliesBf16()) return RoundToBf16(from, to);
  EncodeRow(FloatFormat::kBf16, from, reinterpret_cast<std::byte*>(to));
}

std::byte* UseMath(const Attrs& attrs, GemmTask<float>& task, std::vector<std::byte>& scratch,
                   size_t more) {
  if (TextAttr(attrs, "math", "fp32") == "bf16") task.math = GemmMath::kBf16;
  const size_t used =
      GoesByPanels(task) ? PanelWorkspace(task, PanelsFor(task)) : CompiledWorkspace(task);
  const size_t bytes = (used + kAlignment - 1) / kAlignment * kAlignment;
  std::byte* const begin = AlignedScratch(scratch, bytes + more);
  if (bytes > 0) task.workspace = begin;
  return begin + bytes;
}
std::byte* UseMath(const Attrs&, GemmTask<double>&, std::vector<std::byte>& scratch, size_t more) {
  return AlignedScratch(scratch, more);
}

void Gemm(TaskPool& pool, const GemmTask<float>& task) {
  const GemmShape& shape = task.shape;
  DT_CHECK(!task.rows_vary || !shape.transpose_a || !shape.transpose_b);
  const GemmEpilogue<float>& epilogue = task.epilogue;
  DT_CHECK(!epilogue.any() || !shape.transpose_a);
  if (shape.m == 0 || shape.n == 0) return;
  DT_CHECK(task.c != nullptr || epilogue.bf16_c != nullptr || epilogue.sums.parts != nullptr);
  if (shape.k == 0) return FinishZeros(pool, task);
  kProductWork.Count(0, 2 * shape.m * shape.n * shape.k);
  if (GoesByPanels(task)) return PanelTiles(pool, task, PanelsFor(task));
  CompiledTiles(pool, task);
}

void Gemm(TaskPool& pool, const GemmTask<double>& task) {
  const GemmShape& shape = task.shape;
  const size_t a_row = shape.transpose_a ? 1 : shape.k, a_col = shape.transpose_a ? shape.m : 1;
  const size_t b_row = shape.transpose_b ? 1 : shape.n, b_col = shape.transpose_b ? shape.k : 1;
  if (shape.m == 0 || shape.n == 0) return;
  DT_CHECK(task.c != nullptr && task.epilogue.bf16_c == nullptr);
  pool.ParallelFor(shape.m, kTileRows, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      double* const values = task.c + r * shape.n;
      for (size_t j = 0; j < shape.n; ++j) {
        const double* row = task.a + r * a_row;
        const double* col = task.b + j * b_col;
        double sum = 0;
        for (size_t k = 0; k < shape.k; ++k) sum += row[k * a_col] * col[k * b_row];
        values[j] = sum;
      }
      FinishRow(task, r, 0, shape.n, values);
    }
  });
}

}  // namespace dt
