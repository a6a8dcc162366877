#include "ops/dense/gemm_cpu.h"

#include <algorithm>
#include <span>

#include <dnnl.h>
#include <omp.h>

#include "common/base/check.h"
#include "common/base/float_formats.h"
#include "ops/dense/strided_product_cpu.h"

namespace dt {
namespace {

// oneDNN is built on OpenMP: without this each thread of the pool would start a team of its own.
void UseOneThreadHere() {
  thread_local bool done = false;
  if (done) return;
  omp_set_num_threads(1);
  done = true;
}

size_t DivideUp(size_t n, size_t by) { return (n + by - 1) / by; }

// Tall results are cut into blocks of 256 rows, whose operands stay in the second-level cache;
// others into about four blocks, in multiples of the 16 floats of a vector.
struct Tile {
  size_t rows, cols;
};
Tile TileFor(const GemmShape& shape) {
  const auto quarter = [](size_t n) { return DivideUp(DivideUp(n, 4), 16) * 16; };
  if (shape.m < 64) return {shape.m, std::max<size_t>(64, quarter(shape.n))};
  const size_t cols = shape.n <= 768 ? shape.n : 512;
  return {shape.m >= 1024 ? 256 : quarter(shape.m), cols};
}

// op(A)'s rows of one tile, with what oneDNN calls the leading dimension.
struct Rows {
  const float* a;
  size_t leading;
};
void Sgemm(const GemmTask<float>& task, const GemmTile& tile, const Rows& rows, const float* b) {
  const GemmShape& shape = task.shape;
  const auto dim = [](size_t n) { return static_cast<dnnl_dim_t>(n); };
  const size_t b_at = shape.transpose_b ? tile.col * shape.k : tile.col;
  const dnnl_status_t status =
      dnnl_sgemm(shape.transpose_a ? 'T' : 'N', shape.transpose_b ? 'T' : 'N', dim(tile.rows),
                 dim(tile.cols), dim(shape.k), 1.0f, rows.a, dim(rows.leading), b + b_at,
                 dim(shape.transpose_b ? shape.k : shape.n), 0.0f,
                 task.c + tile.row * shape.n + tile.col, dim(shape.n));
  DT_CHECK_MSG(status == dnnl_success, "dnnl_sgemm: {}", static_cast<int>(status));
}

// With A's rows of the tile as they lie: [rows, k], or [k, rows].
StridedProduct ProductOf(const GemmShape& shape, const GemmTile& tile, FactorType type) {
  return {.type = type,
          .m = tile.rows,
          .n = tile.cols,
          .k = shape.k,
          .a_row = shape.transpose_a ? 1 : shape.k,
          .a_col = shape.transpose_a ? tile.rows : 1,
          .b_row = shape.transpose_b ? 1 : shape.n,
          .b_col = shape.transpose_b ? shape.k : 1,
          .c_row = shape.n};
}

// dnnl_sgemm is slower where B lies turned: up to a fourth, if its rows are odd in number.
void MultiplyTurned(const GemmTask<float>& task, const GemmTile& tile) {
  const GemmShape& shape = task.shape;
  Multiply(ProductOf(shape, tile, FactorType::kFp32),
           {.a = task.a + tile.row * shape.k,
            .b = task.b + tile.col * shape.k,
            .c = task.c + tile.row * shape.n + tile.col});
}

void Fp32Tile(const GemmTask<float>& task, const GemmTile& tile) {
  const GemmShape& shape = task.shape;
  const size_t at = shape.transpose_a ? tile.row : tile.row * shape.k;
  if (shape.transpose_b && !shape.transpose_a) return MultiplyTurned(task, tile);
  Sgemm(task, tile, {task.a + at, shape.transpose_a ? shape.m : shape.k}, task.b);
}

// ------------------------------------------------------------ bf16

void Round(std::span<const float> from, uint16_t* to) { RoundToBf16(from, to); }
// To floats that bf16 holds, on a processor that does not multiply it.
void Round(std::span<const float> from, float* to) {
  constexpr size_t kPiece = 256;
  std::byte bits[2 * kPiece];
  for (size_t at = 0; at < from.size(); at += kPiece) {
    const size_t count = std::min(kPiece, from.size() - at);
    EncodeRow(FloatFormat::kBf16, from.subspan(at, count), bits);
    DecodeRow(FloatFormat::kBf16, bits, {to + at, count});
  }
}

// The tile's rows of op(A), one after the other as they lie: [rows, k], or [k, rows].
template <class To>
const To* RoundedRows(const GemmTask<float>& task, const GemmTile& tile) {
  thread_local std::vector<To> rounded;
  const GemmShape& shape = task.shape;
  const size_t count = tile.rows * shape.k;
  if (rounded.size() < count) rounded.resize(count);
  if (!shape.transpose_a) {
    Round({task.a + tile.row * shape.k, count}, rounded.data());
    return rounded.data();
  }
  for (size_t p = 0; p < shape.k; ++p) {
    Round({task.a + p * shape.m + tile.row, tile.rows}, rounded.data() + p * tile.rows);
  }
  return rounded.data();
}

template <class To>
void RoundB(TaskPool& pool, const GemmTask<float>& task) {
  constexpr size_t kPiece = 16384;
  To* const to = reinterpret_cast<To*>(task.rounded_b);
  pool.ParallelFor(task.shape.k * task.shape.n, kPiece, [&](size_t begin, size_t end) {
    Round({task.b + begin, end - begin}, to + begin);
  });
}

void Bf16Tile(const GemmTask<float>& task, const GemmTile& tile) {
  const GemmShape& shape = task.shape;
  const auto* const b = reinterpret_cast<const uint16_t*>(task.rounded_b);
  Multiply(ProductOf(shape, tile, FactorType::kBf16),
           {.a = RoundedRows<uint16_t>(task, tile),
            .b = b + (shape.transpose_b ? tile.col * shape.k : tile.col),
            .c = task.c + tile.row * shape.n + tile.col});
}

// On a processor that does not multiply bf16.
void RoundedTile(const GemmTask<float>& task, const GemmTile& tile) {
  const size_t leading = task.shape.transpose_a ? tile.rows : task.shape.k;
  Sgemm(task, tile, {RoundedRows<float>(task, tile), leading}, task.rounded_b);
}

// What makes one tile, after what they share is there.
using MakeTile = void (*)(const GemmTask<float>& task, const GemmTile& tile);
MakeTile Prepared(TaskPool& pool, const GemmTask<float>& task) {
  if (task.math == GemmMath::kFp32) return Fp32Tile;
  if (MultipliesBf16()) {
    RoundB<uint16_t>(pool, task);
    return Bf16Tile;
  }
  RoundB<float>(pool, task);
  return RoundedTile;
}

}  // namespace

void UseMath(const Attrs& attrs, GemmTask<float>& task, std::vector<std::byte>& scratch) {
  if (TextAttr(attrs, "math", "fp32") != "bf16") return;
  const size_t bytes = task.shape.k * task.shape.n * sizeof(float);
  if (scratch.size() < bytes) scratch.resize(bytes);
  task.math = GemmMath::kBf16;
  task.rounded_b = reinterpret_cast<float*>(scratch.data());
}

void Gemm(TaskPool& pool, const GemmTask<float>& task, GemmThen then) {
  const GemmShape& shape = task.shape;
  if (shape.m == 0 || shape.n == 0) return;
  if (shape.k == 0) {
    std::fill_n(task.c, shape.m * shape.n, 0.0f);
    return then({0, 0, shape.m, shape.n});
  }
  const MakeTile make_tile = Prepared(pool, task);
  const Tile tile = TileFor(shape);
  const size_t across = DivideUp(shape.n, tile.cols);
  pool.ParallelFor(DivideUp(shape.m, tile.rows) * across, 1, [&](size_t begin, size_t end) {
    UseOneThreadHere();
    for (size_t t = begin; t < end; ++t) {
      const size_t i = t / across * tile.rows, j = t % across * tile.cols;
      const GemmTile here{i, j, std::min(tile.rows, shape.m - i), std::min(tile.cols, shape.n - j)};
      make_tile(task, here);
      then(here);
    }
  });
}

void Gemm(TaskPool& pool, const GemmTask<double>& task, GemmThen then) {
  const GemmShape& shape = task.shape;
  const size_t a_row = shape.transpose_a ? 1 : shape.k, a_col = shape.transpose_a ? shape.m : 1;
  const size_t b_row = shape.transpose_b ? 1 : shape.n, b_col = shape.transpose_b ? shape.k : 1;
  const size_t grain = std::max<size_t>(1, 256 / std::max<size_t>(1, shape.n));
  pool.ParallelFor(shape.m, grain, [&](size_t begin, size_t end) {
    for (size_t at = begin * shape.n; at < end * shape.n; ++at) {
      const double* row = task.a + at / shape.n * a_row;
      const double* col = task.b + at % shape.n * b_col;
      double sum = 0;
      for (size_t k = 0; k < shape.k; ++k) sum += row[k * a_col] * col[k * b_row];
      task.c[at] = sum;
    }
    then({begin, 0, end - begin, shape.n});
  });
}

}  // namespace dt
