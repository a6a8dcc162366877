#include "ops/gemm/panel_product_cpu.h"

#include <algorithm>
#include <cstring>
#include <immintrin.h>

#include "common/base/check.h"
#include "ops/gemm/panel_packing_cpu.h"

namespace dt {
namespace {

using panels::Cut, panels::PackRange, panels::OfFloats, panels::OfBf16;
using panels::FirstLanes, panels::kLanes, panels::Pack, panels::WordsOf;

// A block of C in registers is 6 rows by four vectors, 24 of the 32 registers: each word of A is
// loaded for four products, each of B for six.
constexpr size_t kVectors = kPanelCols / kLanes, kPartSteps = 64;

// ------------------------------------------------------------ blocks

// Words of a factor A: where row r's of step s lies.
struct RowWords {
  const std::byte* begin = nullptr;
  size_t row = 0, step = 0;  // Bytes from one to the next.
  bool half = false;         // The last step has one term, and no word to read.
};

// A block of C, and what it is the product of.
struct Block {
  size_t steps = 0;
  RowWords a;
  const uint32_t* b = nullptr;
  float* c = nullptr;
  size_t stride = 0;   // Of C's rows.
  __mmask16 last = 0;  // Lanes of the last vector of a row.
  bool add = false;    // To what C holds.
};

template <class Words, int rows, int vectors>
DT_AVX512 __attribute__((always_inline)) inline void AddSteps(const RowWords& of, size_t steps,
                                                              const uint32_t* b,
                                                              __m512 (&sum)[rows][vectors]) {
  const std::byte* a = of.begin;
  for (size_t s = 0; s < steps; ++s, a += of.step, b += kPanelCols) {
    __m512i of_b[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) of_b[v] = _mm512_load_si512(b + v * kLanes);
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      int word;
      std::memcpy(&word, a + static_cast<size_t>(r) * of.row, sizeof(word));
      const __m512i of_a = _mm512_set1_epi32(word);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[r][v] = Words::Add(sum[r][v], of_a, of_b[v]);
    }
  }
}

template <class Words, int rows, int vectors>
DT_AVX512 void MultiplyBlock(const Block& block) {
  __m512 sum[rows][vectors];
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      sum[r][v] = _mm512_setzero_ps();
      __builtin_prefetch(block.c + static_cast<size_t>(r) * block.stride + v * kLanes, 1);
    }
  }
  const size_t whole = block.steps - (block.a.half ? 1 : 0);
  AddSteps<Words>(block.a, whole, block.b, sum);
  if (block.a.half) {
    uint32_t words[rows];
    for (int r = 0; r < rows; ++r) {
      uint16_t term;
      std::memcpy(&term,
                  block.a.begin + whole * block.a.step + static_cast<size_t>(r) * block.a.row,
                  sizeof(term));
      words[r] = term;
    }
    const RowWords last{reinterpret_cast<const std::byte*>(words), sizeof(uint32_t)};
    AddSteps<Words>(last, 1, block.b + whole * kPanelCols, sum);
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const __mmask16 lanes = v == vectors - 1 ? block.last : FirstLanes(kLanes);
      float* const at = block.c + static_cast<size_t>(r) * block.stride + v * kLanes;
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

// ------------------------------------------------------------ tiles

// The panels of a piece of a tile's columns: those of B packed as a whole, or packed here.
template <class Words>
class TileColumns {
 public:
  TileColumns(const PanelFactor& b, const PackedLine* packed, const Cut& cut,
              const GemmTile<float>& tile)
      : b_(b), cut_(cut), tile_(tile), packed_(WordsOf(packed)) {
    if (packed != nullptr) return;
    const size_t lines = Cut::RoomLines(tile.cols, kPanelCols);
    own_ = WordsOf(TileRoom<PackedLine, Purpose::kColumns>(lines));
  }

  void Take(size_t piece) {
    if (own_ != nullptr) {
      const PackRange range{piece, 0, cut_.Count(piece), tile_.col, tile_.cols};
      Pack<Words, kPanelCols>(b_, cut_, range, own_);
      panels_ = own_;
    } else {
      const size_t before = tile_.col / kPanelCols * cut_.Panel(kPanelCols);
      panels_ = packed_ + cut_.Before(piece, b_.lines) + before;
    }
  }
  // That of the tile's column j.
  const uint32_t* At(size_t j) const { return panels_ + j / kPanelCols * cut_.Panel(kPanelCols); }

 private:
  const PanelFactor& b_;
  const Cut& cut_;
  const GemmTile<float>& tile_;
  const uint32_t* const packed_;
  uint32_t* own_ = nullptr;
  const uint32_t* panels_ = nullptr;
};

// Rows of a tile where they lie; rounded, if they must be.
template <class Words>
class TileRows {
 public:
  TileRows(const PanelFactor& a, const Cut& cut, const GemmTile<float>& tile)
      : cut_(cut), odd_(kBytes == sizeof(uint16_t) && a.k % 2 != 0), row_(a.k * kBytes) {
    const size_t at = tile.row * a.k, count = tile.rows * a.k;
    if constexpr (Words::kType == FactorType::kFp32) {
      rows_ = reinterpret_cast<const std::byte*>(a.wide + at);
    } else if (a.bf16 != nullptr) {
      rows_ = reinterpret_cast<const std::byte*>(a.bf16 + at);
    } else {
      uint16_t* const rounded = TileRoom<uint16_t, Purpose::kRows>(count);
      RoundToBf16({a.wide + at, count}, rounded);
      rows_ = reinterpret_cast<const std::byte*>(rounded);
    }
  }

  void Take(size_t piece) {
    words_ = {rows_ + piece * cut_.length * sizeof(uint32_t), row_, sizeof(uint32_t),
              odd_ && piece + 1 == cut_.pieces};
  }
  RowWords At(size_t r) const {
    RowWords words = words_;
    words.begin += r * row_;
    return words;
  }

 private:
  static constexpr size_t kBytes =
      Words::kType == FactorType::kFp32 ? sizeof(float) : sizeof(uint16_t);

  const Cut& cut_;
  const bool odd_;
  const size_t row_;
  const std::byte* rows_ = nullptr;
  RowWords words_;
};

// The same of rows that lie across: packed here.
template <class Words>
class PackedTileRows {
 public:
  PackedTileRows(const PanelFactor& a, const Cut& cut, const GemmTile<float>& tile)
      : a_(a), cut_(cut), tile_(tile) {
    const size_t lines = Cut::RoomLines(tile.rows, kBlockRows);
    packed_ = WordsOf(TileRoom<PackedLine, Purpose::kRows>(lines));
  }

  void Take(size_t piece) {
    const PackRange range{piece, 0, cut_.Count(piece), tile_.row, tile_.rows};
    Pack<Words, kBlockRows, true>(a_, cut_, range, packed_);
  }
  RowWords At(size_t r) const {
    const uint32_t* const panel = packed_ + r / kBlockRows * cut_.Panel(kBlockRows);
    return {reinterpret_cast<const std::byte*>(panel), sizeof(uint32_t),
            kBlockRows * sizeof(uint32_t)};
  }

 private:
  const PanelFactor& a_;
  const Cut& cut_;
  const GemmTile<float>& tile_;
  uint32_t* packed_ = nullptr;
};

template <class Words, class Rows>
void MultiplyTile(const PanelFactor& a, const PanelFactor& b, const PackedLine* packed,
                  const GemmTile<float>& tile) {
  const Cut cut(Words::kType, a.k);
  Rows rows(a, cut, tile);
  TileColumns<Words> columns(b, packed, cut, tile);
  for (size_t piece = 0; piece < cut.pieces; ++piece) {
    rows.Take(piece);
    columns.Take(piece);
    for (size_t j = 0; j < tile.cols; j += kPanelCols) {
      const size_t cols = std::min(kPanelCols, tile.cols - j), vectors = DivideUp(cols, kLanes);
      for (size_t r = 0; r < tile.rows; r += kBlockRows) {
        const Block block{.steps = cut.Count(piece),
                          .a = rows.At(r),
                          .b = columns.At(j),
                          .c = tile.values + r * tile.cols + j,
                          .stride = tile.cols,
                          .last = FirstLanes(cols - (vectors - 1) * kLanes),
                          .add = piece > 0};
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

size_t PackedLines(FactorType type, size_t n, size_t k) {
  const Cut cut(type, k);
  return cut.Before(cut.pieces, n) / kLanes;
}

size_t PackedParts(FactorType type, size_t k) {
  const Cut cut(type, k);
  return cut.pieces * DivideUp(cut.length, kPartSteps);
}

void PackPart(FactorType type, const PanelFactor& b, size_t part, PackedLine* packed) {
  const Cut cut(type, b.k);
  const size_t parts = DivideUp(cut.length, kPartSteps), piece = part / parts;
  const size_t begin = part % parts * kPartSteps;
  const size_t end = std::min(begin + kPartSteps, cut.Count(piece));
  OnWords(type, [&]<class Words>(Words) {
    uint32_t* const to = WordsOf(packed) + cut.Before(piece, b.lines);
    Pack<Words, kPanelCols>(b, cut, {piece, begin, end, 0, b.lines}, to);
  });
}

void MultiplyPanels(FactorType type, const PanelFactor& a, const PanelFactor& b,
                    const PackedLine* packed, const GemmTile<float>& tile) {
  DT_CHECK(tile.col % kPanelCols == 0);
  OnWords(type, [&]<class Words>(Words) {
    if (a.across) return MultiplyTile<Words, PackedTileRows<Words>>(a, b, packed, tile);
    MultiplyTile<Words, TileRows<Words>>(a, b, packed, tile);
  });
}

}  // namespace dt
