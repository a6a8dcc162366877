#include "ops/dense/gemm_cpu.h"

#include <algorithm>
#include <span>
#include <type_traits>

#include <omp.h>

#include "common/base/check.h"
#include "common/base/float_formats.h"
#include "ops/dense/compiled_product_cpu.h"
#include "ops/dense/transposed_product_cpu.h"

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

struct Tile {
  size_t rows, cols;
  size_t step = 1;  // Rows are filled up to multiples of it.

  size_t Filled(size_t n) const { return DivideUp(n, step) * step; }
};
size_t Quarter(size_t n, size_t of) { return DivideUp(DivideUp(n, 4), of) * of; }
// Tall results are cut into blocks of 256 rows, whose operands stay in the second-level cache;
// others into about four blocks, in multiples of the 16 floats of a vector or of kTileRows. Few
// blocks of wide rows are cut once more, for the processors there may be.
Tile TileFor(const GemmShape& shape) {
  if (shape.m < kTileRows) return {shape.m, std::max<size_t>(64, Quarter(shape.n, 16))};
  const size_t rows = Quarter(shape.m, shape.transpose_a ? 16 : kTileRows);
  const size_t tall = shape.m >= 1024 ? 256 : rows;
  const bool few = DivideUp(shape.m, tall) < 8;
  return {tall, few && shape.n > 768 ? 512 : shape.n};
}
using FloatTile = GemmTile<float>;

// ------------------------------------------------------------ factors

// One factor of a product: rows of op(A) or columns of op(B), each a line of k numbers. They lie
// one after the other, or across: as [k, lines].
template <class T>
struct Factor {
  // As the product takes it; or what that is made of.
  const T* ready = nullptr;
  const float* wide = nullptr;
  const uint16_t* bf16 = nullptr;
  size_t lines = 0, k = 0;
  bool across = false;
};

void Convert(std::span<const float> from, uint16_t* to) { RoundToBf16(from, to); }
void Convert(std::span<const uint16_t> from, uint16_t* to) { std::ranges::copy(from, to); }
void Convert(std::span<const uint16_t> from, float* to) {
  for (size_t i = 0; i < from.size(); ++i) to[i] = FromBf16(from[i]);
}
// To floats that bf16 holds, on a processor that does not multiply it.
void Convert(std::span<const float> from, float* to) {
  constexpr size_t kPiece = 256;
  uint16_t bits[kPiece];
  for (size_t at = 0; at < from.size(); at += kPiece) {
    const size_t count = std::min(kPiece, from.size() - at);
    StoreBf16(from.subspan(at, count), bits);
    Convert(std::span<const uint16_t>(bits, count), to + at);
  }
}

template <class T>
void Take(const Factor<T>& from, size_t at, size_t count, T* to) {
  if (from.ready != nullptr) {
    std::copy_n(from.ready + at, count, to);
  } else if (from.bf16 != nullptr) {
    Convert(std::span(from.bf16 + at, count), to);
  } else {
    Convert(std::span(from.wide + at, count), to);
  }
}

// Room of this thread, for a tile's factors and for a tile that nobody stores as it is.
enum class Purpose : uint8_t { kRows, kColumns, kTile, kPiece };
template <class T, Purpose>
T* RoomFor(size_t count) {
  thread_local std::vector<T> room;
  if (room.size() < count) room.resize(count);
  return room.data();
}

// Numbers [from, from + k) of lines [first, first + count), with room up to `padded_count` lines of
// `padded_k` numbers. What fills up k is zero; what fills up lines may be anything.
struct Part {
  size_t first, count, padded_count;
  size_t from, k, padded_k;
};
// Densely packed as they lie. REQUIRES: whole lines, unless they lie across.
template <Purpose purpose, class T>
const T* LinesOf(const Factor<T>& factor, const Part& part) {
  const bool padded = part.count != part.padded_count || part.k != part.padded_k;
  const bool together = !factor.across || part.count == factor.lines;
  const size_t at = factor.across ? part.from * factor.lines + part.first : part.first * factor.k;
  if (together && !padded && factor.ready != nullptr) return factor.ready + at;
  T* const to = RoomFor<T, purpose>(part.padded_count * part.padded_k);
  if (!factor.across) {
    DT_CHECK(part.from == 0 && part.k == factor.k && part.padded_k == part.k);
    Take(factor, at, part.count * part.k, to);
    return to;
  }
  for (size_t p = 0; p < part.k; ++p) {
    Take(factor, at + p * factor.lines, part.count, to + p * part.padded_count);
  }
  std::fill(to + part.k * part.padded_count, to + part.padded_k * part.padded_count, T(0));
  return to;
}

template <class T>
Factor<T> FactorA(const GemmTask<float>& task) {
  const GemmShape& shape = task.shape;
  Factor<T> a{.wide = task.a, .bf16 = task.bf16_a, .lines = shape.m, .k = shape.k};
  a.across = shape.transpose_a;
  if constexpr (std::is_same_v<T, float>) {
    if (task.math == GemmMath::kFp32) a.ready = task.a;
  } else {
    a.ready = task.bf16_a;
  }
  return a;
}

// Converted once, for all tiles.
template <class T>
Factor<T> FactorB(TaskPool& pool, const GemmTask<float>& task) {
  const GemmShape& shape = task.shape;
  Factor<T> b{.wide = task.b, .bf16 = task.bf16_b, .lines = shape.n, .k = shape.k};
  b.across = !shape.transpose_b;
  if constexpr (std::is_same_v<T, float>) {
    if (task.math == GemmMath::kFp32) b.ready = task.b;
  } else {
    b.ready = task.bf16_b;
  }
  if (b.ready != nullptr) return b;
  constexpr size_t kPiece = 16384;
  T* const to = reinterpret_cast<T*>(task.room);
  pool.ParallelFor(shape.k * shape.n, kPiece,
                   [&](size_t begin, size_t end) { Take(b, begin, end - begin, to + begin); });
  b.ready = to;
  return b;
}

// ------------------------------------------------------------ tiles

// Calls make(tile) and then(tile) for each; make() has room for filled up rows.
template <class Make>
void EachTile(TaskPool& pool, const GemmTask<float>& task, const Tile& size, GemmThen<float> then,
              const Make& make) {
  const GemmShape& shape = task.shape;
  const size_t across = DivideUp(shape.n, size.cols);
  pool.ParallelFor(DivideUp(shape.m, size.rows) * across, 1, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      const size_t i = t / across * size.rows, j = t % across * size.cols;
      FloatTile tile{i, j, std::min(size.rows, shape.m - i), std::min(size.cols, shape.n - j)};
      const size_t rows = size.Filled(tile.rows);
      const bool in_place = task.c != nullptr && across == 1 && rows == tile.rows;
      tile.values =
          in_place ? task.c + i * shape.n : RoomFor<float, Purpose::kTile>(rows * tile.cols);
      if (shape.k > 0) make(tile);
      if (shape.k == 0) std::fill_n(tile.values, tile.rows * tile.cols, 0.0f);
      then(tile);
      for (size_t r = 0; !in_place && task.c != nullptr && r < tile.rows; ++r) {
        std::copy_n(tile.row_of(r), tile.cols, task.c + (i + r) * shape.n + j);
      }
    }
  });
}

// Of a processor without AVX-512 also products with both factors across: their sums go by pieces,
// so that the lines of a tile that are packed stay small. Where the rows of a product vary, be they
// A's or the terms of each sum, only multiples of kStep are compiled for.
template <class T>
void CompiledTiles(TaskPool& pool, const GemmTask<float>& task, GemmThen<float> then) {
  constexpr size_t kStep = 32, kTerms = 256;
  const GemmShape& shape = task.shape;
  const Factor<T> a = FactorA<T>(task), b = FactorB<T>(pool, task);
  const bool in_pieces = a.across && b.across;
  Tile size = TileFor(shape);
  if (task.rows_vary && !in_pieces) size.step = kStep;
  const size_t piece = in_pieces ? kTerms : shape.k;
  EachTile(pool, task, size, then, [&](const FloatTile& tile) {
    UseOneThreadHere();
    const size_t rows = size.Filled(tile.rows), count = tile.rows * tile.cols;
    for (size_t from = 0; from < shape.k; from += piece) {
      const size_t k = std::min(piece, shape.k - from);
      const size_t padded_k = in_pieces && task.rows_vary ? DivideUp(k, kStep) * kStep : k;
      float* const to = from == 0 ? tile.values : RoomFor<float, Purpose::kPiece>(count);
      Multiply(
          {.type = std::is_same_v<T, float> ? FactorType::kFp32 : FactorType::kBf16,
           .m = rows,
           .n = tile.cols,
           .k = padded_k,
           .transpose_a = shape.transpose_a,
           .transpose_b = shape.transpose_b},
          {LinesOf<Purpose::kRows>(a, {tile.row, tile.rows, rows, from, k, padded_k}),
           LinesOf<Purpose::kColumns>(b, {tile.col, tile.cols, tile.cols, from, k, padded_k}), to});
      for (size_t i = 0; from > 0 && i < count; ++i) tile.values[i] += to[i];
    }
  });
}

// ------------------------------------------------------------ Aᵀ·B

FactorType TypeOf(const GemmTask<float>& task) {
  return task.math == GemmMath::kFp32 ? FactorType::kFp32 : FactorType::kBf16;
}
bool IsTransposed(const GemmTask<float>& task) {
  const bool here = task.math == GemmMath::kFp32 ? HasAvx512() : MultipliesBf16();
  return here && task.shape.transpose_a && !task.shape.transpose_b;
}

// With room, B is packed once and tiles are small; of few rows or many columns, columns are cut.
Tile TransposedTileFor(const GemmShape& shape, bool room) {
  constexpr size_t kColsMax = 11 * kPanelCols;
  if (!room) return {std::min<size_t>(256, Quarter(shape.m, 16)), std::min(shape.n, kColsMax)};
  if (shape.m < kTileRows) return {shape.m, std::min(kColsMax, Quarter(shape.n, kPanelCols))};
  const size_t blocks = std::max<size_t>(4, DivideUp(shape.m, kTileRows));
  return {DivideUp(DivideUp(shape.m, blocks), 8) * 8, std::min(shape.n, kColsMax)};
}

void TransposedTiles(TaskPool& pool, const GemmTask<float>& task, GemmThen<float> then) {
  const GemmShape& shape = task.shape;
  const FactorType type = TypeOf(task);
  const FactorRows a{task.a, task.bf16_a, shape.k, shape.m};
  const FactorRows b{task.b, task.bf16_b, shape.k, shape.n};
  auto* const packed = reinterpret_cast<PackedLine*>(task.room);
  if (packed != nullptr) {
    pool.ParallelFor(PackedPieces(type, shape.k), 1, [&](size_t begin, size_t end) {
      for (size_t piece = begin; piece < end; ++piece) PackPiece(type, b, piece, packed);
    });
  }
  EachTile(pool, task, TransposedTileFor(shape, packed != nullptr), then,
           [&](const FloatTile& tile) { MultiplyTransposed(type, a, b, packed, tile); });
}

}  // namespace

void StoreBf16(std::span<const float> from, uint16_t* to) {
  if (MultipliesBf16()) return RoundToBf16(from, to);
  EncodeRow(FloatFormat::kBf16, from, reinterpret_cast<std::byte*>(to));
}

std::byte* UseMath(const Attrs& attrs, GemmTask<float>& task, std::vector<std::byte>& scratch,
                   size_t more) {
  constexpr size_t kLine = sizeof(PackedLine);
  if (TextAttr(attrs, "math", "fp32") == "bf16") task.math = GemmMath::kBf16;
  const GemmShape& shape = task.shape;
  size_t lines = 0;
  if (IsTransposed(task)) {
    lines = PackedLines(TypeOf(task), {.rows = shape.k, .cols = shape.n});
  } else if (task.math == GemmMath::kBf16) {
    lines = DivideUp(shape.k * shape.n * sizeof(float), kLine);
  }
  const size_t bytes = (lines + 1) * kLine + more;  // One line to begin at a whole one.
  if (scratch.size() < bytes) scratch.resize(bytes);
  const size_t past = reinterpret_cast<uintptr_t>(scratch.data()) % kLine;
  std::byte* const begin = scratch.data() + (past == 0 ? 0 : kLine - past);
  if (lines > 0) task.room = begin;
  return begin + lines * kLine;
}
std::byte* UseMath(const Attrs&, GemmTask<double>&, std::vector<std::byte>& scratch, size_t more) {
  if (scratch.size() < more) scratch.resize(more);
  return scratch.data();
}

void Gemm(TaskPool& pool, const GemmTask<float>& task, GemmThen<float> then) {
  DT_CHECK(!task.rows_vary || !task.shape.transpose_a || !task.shape.transpose_b);
  if (task.shape.m == 0 || task.shape.n == 0) return;
  if (IsTransposed(task)) return TransposedTiles(pool, task, then);
  const bool bf16 = task.math == GemmMath::kBf16 && MultipliesBf16();
  if (bf16) CompiledTiles<uint16_t>(pool, task, then);
  if (!bf16) CompiledTiles<float>(pool, task, then);
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
    then({begin, 0, end - begin, shape.n, task.c + begin * shape.n});
  });
}

}  // namespace dt
