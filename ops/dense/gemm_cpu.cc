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
// others into about four blocks, in multiples of the 16 floats of a vector or of kTileRows.
struct Tile {
  size_t rows, cols;
};
Tile TileFor(const GemmShape& shape) {
  const auto quarter = [](size_t n, size_t of) { return DivideUp(DivideUp(n, 4), of) * of; };
  if (shape.m < kTileRows) return {shape.m, std::max<size_t>(64, quarter(shape.n, 16))};
  const size_t cols = shape.n <= 768 ? shape.n : 512;
  const size_t rows = quarter(shape.m, shape.transpose_a ? 16 : kTileRows);
  return {shape.m >= 1024 ? 256 : rows, cols};
}

// op(A)'s rows of one tile, with what oneDNN calls the leading dimension.
template <class T>
struct Rows {
  const T* a;
  size_t leading;
};
using FloatTile = GemmTile<float>;

// Where the tile's rows of op(A) begin, if A is the whole of it.
size_t RowsAt(const GemmShape& shape, const FloatTile& tile) {
  return shape.transpose_a ? tile.row : tile.row * shape.k;
}
size_t LeadingOf(const GemmShape& shape) { return shape.transpose_a ? shape.m : shape.k; }
size_t ColsAt(const GemmShape& shape, const FloatTile& tile) {
  return shape.transpose_b ? tile.col * shape.k : tile.col;
}

void Sgemm(const GemmTask<float>& task, const FloatTile& tile, const Rows<float>& rows,
           const float* b) {
  const GemmShape& shape = task.shape;
  const auto dim = [](size_t n) { return static_cast<dnnl_dim_t>(n); };
  const dnnl_status_t status = dnnl_sgemm(
      shape.transpose_a ? 'T' : 'N', shape.transpose_b ? 'T' : 'N', dim(tile.rows), dim(tile.cols),
      dim(shape.k), 1.0f, rows.a, dim(rows.leading), b + ColsAt(shape, tile),
      dim(shape.transpose_b ? shape.k : shape.n), 0.0f, tile.values, dim(tile.stride));
  DT_CHECK_MSG(status == dnnl_success, "dnnl_sgemm: {}", static_cast<int>(status));
}

StridedProduct ProductOf(const GemmShape& shape, const FloatTile& tile, FactorType type,
                         size_t leading) {
  return {.type = type,
          .m = tile.rows,
          .n = tile.cols,
          .k = shape.k,
          .a_row = shape.transpose_a ? 1 : leading,
          .a_col = shape.transpose_a ? leading : 1,
          .b_row = shape.transpose_b ? 1 : shape.n,
          .b_col = shape.transpose_b ? shape.k : 1,
          .c_row = tile.stride};
}

// What oneDNN compiles is for one shape and keeps its memory; dnnl_sgemm takes some at each call.
void FloatProduct(const GemmTask<float>& task, const FloatTile& tile, const Rows<float>& rows,
                  const float* b) {
  if (task.rows_vary) return Sgemm(task, tile, rows, b);
  Multiply(ProductOf(task.shape, tile, FactorType::kFp32, rows.leading),
           {.a = rows.a, .b = b + ColsAt(task.shape, tile), .c = tile.values});
}

void Fp32Tile(const GemmTask<float>& task, const FloatTile& tile) {
  FloatProduct(task, tile, {task.a + RowsAt(task.shape, tile), LeadingOf(task.shape)}, task.b);
}

// ------------------------------------------------------------ bf16

void Convert(std::span<const float> from, uint16_t* to) { RoundToBf16(from, to); }
// To floats that bf16 holds, on a processor that does not multiply it.
void Convert(std::span<const float> from, float* to) {
  constexpr size_t kPiece = 256;
  uint16_t bits[kPiece];
  for (size_t at = 0; at < from.size(); at += kPiece) {
    const size_t count = std::min(kPiece, from.size() - at);
    StoreBf16(from.subspan(at, count), bits);
    for (size_t i = 0; i < count; ++i) to[at + i] = FromBf16(bits[i]);
  }
}
void Convert(std::span<const uint16_t> from, float* to) {
  for (size_t i = 0; i < from.size(); ++i) to[i] = FromBf16(from[i]);
}

// The tile's rows of op(A), one after the other as they lie: [rows, k], or [k, rows].
template <class To, class From>
Rows<To> ConvertedRows(const GemmShape& shape, const FloatTile& tile, const From* a) {
  thread_local std::vector<To> converted;
  const size_t count = tile.rows * shape.k;
  if (converted.size() < count) converted.resize(count);
  To* const to = converted.data();
  if (!shape.transpose_a) {
    Convert(std::span(a + tile.row * shape.k, count), to);
    return {to, shape.k};
  }
  for (size_t p = 0; p < shape.k; ++p) {
    Convert(std::span(a + p * shape.m + tile.row, tile.rows), to + p * tile.rows);
  }
  return {to, tile.rows};
}

template <class To, class From>
void ConvertB(TaskPool& pool, const GemmTask<float>& task, const From* b) {
  constexpr size_t kPiece = 16384;
  To* const to = reinterpret_cast<To*>(task.rounded_b);
  pool.ParallelFor(task.shape.k * task.shape.n, kPiece, [&](size_t begin, size_t end) {
    Convert(std::span(b + begin, end - begin), to + begin);
  });
}

void Bf16Tile(const GemmTask<float>& task, const FloatTile& tile) {
  const GemmShape& shape = task.shape;
  const Rows<uint16_t> rows =
      task.bf16_a == nullptr ? ConvertedRows<uint16_t>(shape, tile, task.a)
                             : Rows<uint16_t>{task.bf16_a + RowsAt(shape, tile), LeadingOf(shape)};
  const auto* const rounded = reinterpret_cast<const uint16_t*>(task.rounded_b);
  const uint16_t* const b = task.bf16_b == nullptr ? rounded : task.bf16_b;
  Multiply(ProductOf(shape, tile, FactorType::kBf16, rows.leading),
           {.a = rows.a, .b = b + ColsAt(shape, tile), .c = tile.values});
}

// On a processor that does not multiply bf16.
void RoundedTile(const GemmTask<float>& task, const FloatTile& tile) {
  const bool stored = task.bf16_a != nullptr;
  FloatProduct(task, tile,
               stored ? ConvertedRows<float>(task.shape, tile, task.bf16_a)
                      : ConvertedRows<float>(task.shape, tile, task.a),
               task.rounded_b);
}

// What makes one tile, after what they share is there.
using MakeTile = void (*)(const GemmTask<float>& task, const FloatTile& tile);
MakeTile Prepared(TaskPool& pool, const GemmTask<float>& task) {
  if (task.math == GemmMath::kFp32) return Fp32Tile;
  if (MultipliesBf16()) {
    if (task.bf16_b == nullptr) ConvertB<uint16_t>(pool, task, task.b);
    return Bf16Tile;
  }
  if (task.bf16_b != nullptr) {
    ConvertB<float>(pool, task, task.bf16_b);
  } else {
    ConvertB<float>(pool, task, task.b);
  }
  return RoundedTile;
}

// Room for a tile that nobody stores whole.
float* TileRoom(size_t count) {
  thread_local std::vector<float> room;
  if (room.size() < count) room.resize(count);
  return room.data();
}

}  // namespace

void StoreBf16(std::span<const float> from, uint16_t* to) {
  if (MultipliesBf16()) return RoundToBf16(from, to);
  EncodeRow(FloatFormat::kBf16, from, reinterpret_cast<std::byte*>(to));
}

std::byte* UseMath(const Attrs& attrs, GemmTask<float>& task, std::vector<std::byte>& scratch,
                   size_t more) {
  const bool bf16 = TextAttr(attrs, "math", "fp32") == "bf16";
  const size_t own = bf16 ? DivideUp(task.shape.k * task.shape.n * sizeof(float), 64) * 64 : 0;
  if (scratch.size() < own + more) scratch.resize(own + more);
  if (bf16) task.math = GemmMath::kBf16;
  if (bf16) task.rounded_b = reinterpret_cast<float*>(scratch.data());
  return scratch.data() + own;
}
std::byte* UseMath(const Attrs&, GemmTask<double>&, std::vector<std::byte>& scratch, size_t more) {
  if (scratch.size() < more) scratch.resize(more);
  return scratch.data();
}

void Gemm(TaskPool& pool, const GemmTask<float>& task, GemmThen<float> then) {
  const GemmShape& shape = task.shape;
  if (shape.m == 0 || shape.n == 0) return;
  const MakeTile make_tile = shape.k == 0 ? nullptr : Prepared(pool, task);
  const Tile tile = TileFor(shape);
  const size_t across = DivideUp(shape.n, tile.cols);
  pool.ParallelFor(DivideUp(shape.m, tile.rows) * across, 1, [&](size_t begin, size_t end) {
    UseOneThreadHere();
    for (size_t t = begin; t < end; ++t) {
      const size_t i = t / across * tile.rows, j = t % across * tile.cols;
      FloatTile here{i, j, std::min(tile.rows, shape.m - i), std::min(tile.cols, shape.n - j)};
      here.stride = task.c == nullptr ? here.cols : shape.n;
      here.values = task.c == nullptr ? TileRoom(here.rows * here.cols) : task.c + i * shape.n + j;
      if (make_tile != nullptr) make_tile(task, here);
      for (size_t r = 0; make_tile == nullptr && r < here.rows; ++r) {
        std::fill_n(here.values + r * here.stride, here.cols, 0.0f);
      }
      then(here);
    }
  });
}

void Gemm(TaskPool& pool, const GemmTask<double>& task, GemmThen<double> then) {
  const GemmShape& shape = task.shape;
  const size_t a_row = shape.transpose_a ? 1 : shape.k, a_col = shape.transpose_a ? shape.m : 1;
  const size_t b_row = shape.transpose_b ? 1 : shape.n, b_col = shape.transpose_b ? shape.k : 1;
  pool.ParallelFor(shape.m, kTileRows, [&](size_t begin, size_t end) {
    for (size_t at = begin * shape.n; at < end * shape.n; ++at) {
      const double* row = task.a + at / shape.n * a_row;
      const double* col = task.b + at % shape.n * b_col;
      double sum = 0;
      for (size_t k = 0; k < shape.k; ++k) sum += row[k * a_col] * col[k * b_row];
      task.c[at] = sum;
    }
    then({begin, 0, end - begin, shape.n, task.c + begin * shape.n, shape.n});
  });
}

}  // namespace dt
