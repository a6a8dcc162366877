#include "ops/dense/transposed_product_cpu.h"

#include <algorithm>
#include <immintrin.h>
#include <vector>

#include "common/base/check.h"

// HasAvx512(); what multiplies bf16 is used only where the factors are.
#define DT_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace dt {
namespace {

// A block of C in registers is 8 rows by three vectors, 24 of the 32 registers. A piece of B's 512
// columns is 512 KB: half of a second-level cache of today.
constexpr size_t kLanes = 16, kVectors = 3, kBlockRows = 8, kSteps = 256;
static_assert(kPanelCols == kLanes * kVectors);

size_t DivideUp(size_t n, size_t by) { return (n + by - 1) / by; }
uint32_t* WordsOf(PackedLine* lines) { return reinterpret_cast<uint32_t*>(lines); }
const uint32_t* WordsOf(const PackedLine* lines) {
  return reinterpret_cast<const uint32_t*>(lines);
}
__mmask16 FirstLanes(size_t n) { return static_cast<__mmask16>(n >= 16 ? 0xffff : (1u << n) - 1); }

// What a word is, and the product of two. A step is one word of each row or column. What is packed
// `ahead` rows later is fetched, since rows lie far apart.
struct OfFloats {  // A float.
  static constexpr size_t kTerms = 1;

  template <size_t ahead>
  DT_AVX512 static __m512i Load(const FactorRows& from, size_t row, size_t col, __mmask16 lanes) {
    const float* const at = from.wide + row * from.cols + col;
    __builtin_prefetch(at + ahead * from.cols);
    return _mm512_castps_si512(_mm512_maskz_loadu_ps(lanes, at));
  }
  DT_AVX512 static __m512 Add(__m512 sum, __m512i a, __m512i b) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
  }
};
struct OfBf16 {  // The bf16 of two rows, the earlier one in the low half.
  static constexpr size_t kTerms = 2;

  template <size_t ahead>
  DT_AVX512 static __m512i LoadRow(const FactorRows& from, size_t at, __mmask16 lanes) {
    if (from.bf16 != nullptr) {
      __builtin_prefetch(from.bf16 + at + ahead * from.cols);
      return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, from.bf16 + at));
    }
    __builtin_prefetch(from.wide + at + ahead * from.cols);
    const __m256bh row = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(lanes, from.wide + at));
    return _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(row));
  }
  template <size_t ahead>
  DT_AVX512 static __m512i Load(const FactorRows& from, size_t row, size_t col, __mmask16 lanes) {
    const size_t at = row * from.cols + col;
    const __m512i low = LoadRow<ahead>(from, at, lanes);
    if (row + 1 == from.rows) return low;
    return _mm512_or_si512(low, _mm512_slli_epi32(LoadRow<ahead>(from, at + from.cols, lanes), 16));
  }
  DT_AVX512 static __m512 Add(__m512 sum, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};

// Steps [first, first + count) of a factor's columns [col, col + cols), packed in panels of `width`
// columns, step by step. A line between panels keeps them from meeting in one set of the cache.
struct Piece {
  size_t first, count, col, cols;

  size_t Panel(size_t width) const { return count * width + kLanes; }  // In words.
};
template <class Words>
Piece PieceAt(size_t first, size_t rows, size_t col, size_t cols) {
  const size_t steps = DivideUp(rows, Words::kTerms);
  return {first, std::min(kSteps, steps - first), col, cols};
}

// Of a packed factor B with so many columns.
size_t LinesBefore(size_t steps, size_t cols) {
  return DivideUp(cols, kPanelCols) * (steps * kVectors + DivideUp(steps, kSteps));
}

template <class Words, size_t width>
DT_AVX512 void Pack(const FactorRows& from, const Piece& piece, uint32_t* to) {
  constexpr size_t kAhead = width < kLanes ? 16 : 4;  // Of A a row's part is a few lines.
  for (size_t s = 0; s < piece.count; ++s) {
    const size_t row = (piece.first + s) * Words::kTerms;
    for (size_t j = 0; j < piece.cols; j += kLanes) {
      const __m512i words =
          Words::template Load<kAhead>(from, row, piece.col + j, FirstLanes(piece.cols - j));
      uint32_t* const at = to + j / width * piece.Panel(width) + s * width + j % width;
      if constexpr (width >= kLanes) {
        _mm512_store_si512(at, words);
      } else {
        static_assert(2 * width == kLanes);
        _mm256_store_si256(reinterpret_cast<__m256i*>(at), _mm512_castsi512_si256(words));
        if (piece.cols - j <= width) continue;
        _mm256_store_si256(reinterpret_cast<__m256i*>(at + piece.Panel(width)),
                           _mm512_extracti64x4_epi64(words, 1));
      }
    }
  }
}

// A block of C, and the panels that it is the product of.
struct Block {
  size_t steps = 0;
  const uint32_t* a = nullptr;
  const uint32_t* b = nullptr;
  float* c = nullptr;
  size_t stride = 0;   // Of C's rows.
  __mmask16 last = 0;  // Lanes of the last vector of a row.
  bool add = false;    // To what C holds.
};

template <class Words, int rows, int vectors>
DT_AVX512 void MultiplyBlock(const Block& block) {
  __m512 sum[rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < vectors; ++v) sum[r][v] = _mm512_setzero_ps();
  }
  const uint32_t *a = block.a, *b = block.b;
  for (size_t s = 0; s < block.steps; ++s, a += kBlockRows, b += kPanelCols) {
    __m512i of_b[vectors];
#pragma GCC unroll 3
    for (int v = 0; v < vectors; ++v) of_b[v] = _mm512_load_si512(b + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const __m512i of_a = _mm512_set1_epi32(static_cast<int>(a[r]));
#pragma GCC unroll 3
      for (int v = 0; v < vectors; ++v) sum[r][v] = Words::Add(sum[r][v], of_a, of_b[v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 3
    for (int v = 0; v < vectors; ++v) {
      const __mmask16 lanes = v == vectors - 1 ? block.last : FirstLanes(kLanes);
      float* const at = block.c + r * block.stride + v * kLanes;
      if (block.add) sum[r][v] = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, at), sum[r][v]);
      _mm512_mask_storeu_ps(at, lanes, sum[r][v]);
    }
  }
}

// Of at most kBlockRows rows and kVectors vectors, numbers that the compiler must know.
template <class Words, int rows = kBlockRows, int vectors = kVectors>
void MultiplyBlock(size_t block_rows, size_t block_vectors, const Block& block) {
  if constexpr (rows > 1) {
    if (block_rows < rows) {
      return MultiplyBlock<Words, rows - 1, vectors>(block_rows, block_vectors, block);
    }
  }
  if constexpr (vectors > 1) {
    if (block_vectors < vectors) {
      return MultiplyBlock<Words, rows, vectors - 1>(block_rows, block_vectors, block);
    }
  }
  MultiplyBlock<Words, rows, vectors>(block);
}

// Room of this thread for a packed piece.
enum class Side : uint8_t { kA, kB };
template <Side side, size_t width>
uint32_t* RoomFor(size_t cols) {
  thread_local std::vector<PackedLine> room;
  const size_t lines = DivideUp(cols, width) * (kSteps * width / kLanes + 1);
  if (room.size() < lines) room.resize(lines);
  return WordsOf(room.data());
}

template <class Words>
void MultiplyTile(const FactorRows& a, const FactorRows& b, const PackedLine* packed,
                  const GemmTile<float>& tile) {
  uint32_t* const packed_a = RoomFor<Side::kA, kBlockRows>(tile.rows);
  uint32_t* const own_b = packed == nullptr ? RoomFor<Side::kB, kPanelCols>(tile.cols) : nullptr;
  const size_t steps = DivideUp(a.rows, Words::kTerms);
  for (size_t first = 0; first < steps; first += kSteps) {
    const Piece of_a = PieceAt<Words>(first, a.rows, tile.row, tile.rows);
    Pack<Words, kBlockRows>(a, of_a, packed_a);
    const Piece of_b = PieceAt<Words>(first, b.rows, tile.col, tile.cols);
    const uint32_t* packed_b = own_b;
    if (packed != nullptr) {
      packed_b = WordsOf(packed + LinesBefore(first, b.cols)) +
                 tile.col / kPanelCols * of_b.Panel(kPanelCols);
    } else {
      Pack<Words, kPanelCols>(b, of_b, own_b);
    }
    for (size_t r = 0; r < tile.rows; r += kBlockRows) {
      for (size_t j = 0; j < tile.cols; j += kPanelCols) {
        const size_t cols = std::min(kPanelCols, tile.cols - j), vectors = DivideUp(cols, kLanes);
        const Block block{.steps = of_a.count,
                          .a = packed_a + r / kBlockRows * of_a.Panel(kBlockRows),
                          .b = packed_b + j / kPanelCols * of_b.Panel(kPanelCols),
                          .c = tile.values + r * tile.cols + j,
                          .stride = tile.cols,
                          .last = FirstLanes(cols - (vectors - 1) * kLanes),
                          .add = first > 0};
        MultiplyBlock<Words>(std::min(kBlockRows, tile.rows - r), vectors, block);
      }
    }
  }
}

template <class Body>
void OnWords(FactorType type, const Body& body) {
  if (type == FactorType::kFp32) return body(OfFloats());
  body(OfBf16());
}

}  // namespace

size_t PackedPieces(FactorType type, size_t k) {
  return DivideUp(k, kSteps * (type == FactorType::kFp32 ? 1 : 2));
}

size_t PackedLines(FactorType type, const FactorRows& b) {
  const size_t steps = type == FactorType::kFp32 ? b.rows : DivideUp(b.rows, 2);
  return LinesBefore(steps, b.cols);
}

void PackPiece(FactorType type, const FactorRows& b, size_t piece, PackedLine* packed) {
  OnWords(type, [&]<class Words>(Words) {
    const size_t first = piece * kSteps;
    uint32_t* const to = WordsOf(packed + LinesBefore(first, b.cols));
    Pack<Words, kPanelCols>(b, PieceAt<Words>(first, b.rows, 0, b.cols), to);
  });
}

void MultiplyTransposed(FactorType type, const FactorRows& a, const FactorRows& b,
                        const PackedLine* packed, const GemmTile<float>& tile) {
  DT_CHECK(tile.col % kPanelCols == 0);
  OnWords(type, [&]<class Words>(Words) { MultiplyTile<Words>(a, b, packed, tile); });
}

}  // namespace dt
