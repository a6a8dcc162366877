#include "ops/gemm/panel_product_cpu.h"

#include <algorithm>

#include "common/base/check.h"
#include "ops/gemm/panel_block_cpu.h"
#include "ops/gemm/panel_packing_cpu.h"

namespace dt {
namespace {

using panels::Bf16Words, panels::FloatWords, panels::kLanes, panels::WordsOf;
using panels::Block, panels::Cut, panels::FloatRows, panels::PackRange, panels::RowWords;
using panels::FinishBlock, panels::FirstLanes, panels::MultiplyBlock, panels::Pack;

constexpr size_t kPartSteps = 64;
// A group of panels stays in a second-level cache while all rows are multiplied by it.
constexpr size_t kGroup = 4 * kPanelCols;

// ------------------------------------------------------------ tiles

// The panels for a group of a tile's columns: part of a B that was packed as a whole, or packed
// here.
template <class Words>
class TileColumns {
 public:
  TileColumns(const PanelFactor& b, const PackedLine* packed, const Cut& cut, const TileArea& tile)
      : b_(b), cut_(cut), tile_(tile), packed_(WordsOf(packed)) {
    if (packed != nullptr) return;
    const size_t lines = Cut::BufferLines(std::min(tile.cols, kGroup), kPanelCols);
    own_ = WordsOf(TileBuffer<PackedLine, Purpose::kColumns>(lines));
  }

  // Selects columns [begin, end) of the tile.
  void Take(size_t piece, size_t begin, size_t end) {
    begin_ = begin;
    const size_t first = tile_.col + begin;
    if (own_ != nullptr) {
      const PackRange range{piece, 0, cut_.Count(piece), first, end - begin};
      Pack<Words, kPanelCols>(b_, cut_, range, own_);
      panels_ = own_;
    } else {
      const size_t before = first / kPanelCols * cut_.Panel(kPanelCols);
      panels_ = packed_ + cut_.Before(piece, b_.lines) + before;
    }
  }
  // The panel of the tile's column j.
  const uint32_t* At(size_t j) const {
    return panels_ + (j - begin_) / kPanelCols * cut_.Panel(kPanelCols);
  }

 private:
  const PanelFactor& b_;
  const Cut& cut_;
  const TileArea& tile_;
  const uint32_t* const packed_;
  uint32_t* own_ = nullptr;
  const uint32_t* panels_ = nullptr;
  size_t begin_ = 0;
};

// Rows of a tile in their stored place, or rounded to bf16 in this thread's memory.
template <class Words>
class TileRows {
 public:
  TileRows(const PanelFactor& a, const Cut& cut, const TileArea& tile)
      : cut_(cut), odd_(kBytes == sizeof(uint16_t) && a.k % 2 != 0), row_(a.k * kBytes) {
    const size_t at = tile.row * a.k, count = tile.rows * a.k;
    if constexpr (Words::kType == FactorType::kFp32) {
      rows_ = reinterpret_cast<const std::byte*>(a.wide + at);
    } else if (a.bf16 != nullptr) {
      rows_ = reinterpret_cast<const std::byte*>(a.bf16 + at);
    } else {
      uint16_t* const rounded = TileBuffer<uint16_t, Purpose::kRows>(count);
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

// The rows of a tile of a factor stored as columns, which are packed here.
template <class Words>
class PackedTileRows {
 public:
  PackedTileRows(const PanelFactor& a, const Cut& cut, const TileArea& tile)
      : a_(a), cut_(cut), tile_(tile) {
    const size_t lines = Cut::BufferLines(tile.rows, kBlockRows);
    packed_ = WordsOf(TileBuffer<PackedLine, Purpose::kRows>(lines));
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
  const TileArea& tile_;
  uint32_t* packed_ = nullptr;
};

// One tile. Sums of pieces are kept in C or in this thread's memory. If there is an epilogue, the
// last sums pass through a buffer in the first-level cache.
template <class Words, class Rows>
class Tile {
 public:
  Tile(const GemmTask<float>& task, const PanelFactor& a, const PanelFactor& b,
       const PackedLine* packed, const TileArea& area)
      : task_(task),
        area_(area),
        cut_(Words::kType, a.k),
        rows_(a, cut_, area),
        columns_(b, packed, cut_, area) {
    if (task.c != nullptr) {
      sums_ = {task.c + area.row * task.shape.n + area.col, task.shape.n};
    } else if (cut_.pieces > 1) {
      sums_ = {TileBuffer<float, Purpose::kTile>(area.rows * area.cols), area.cols};
    }
  }

  void Multiply() {
    for (size_t piece = 0; piece < cut_.pieces; ++piece) {
      rows_.Take(piece);
      for (size_t j = 0; j < area_.cols; j += kGroup) MultiplyGroup(piece, j);
    }
  }

 private:
  void MultiplyGroup(size_t piece, size_t begin) {
    const size_t end = std::min(begin + kGroup, area_.cols);
    columns_.Take(piece, begin, end);
    for (size_t r = 0; r < area_.rows; r += kBlockRows) {
      const size_t rows = std::min(kBlockRows, area_.rows - r);
      for (size_t j = begin; j < end; j += kPanelCols) {
        OneBlock(piece, {r, j, rows, std::min(kPanelCols, end - j)});
      }
    }
  }

  void OneBlock(size_t piece, const TileArea& at) {
    const size_t vectors = DivideUp(at.cols, kLanes);
    const bool finish = piece + 1 == cut_.pieces && task_.epilogue.any();
    alignas(64) float done[kBlockRows * kPanelCols];
    Block block{.steps = cut_.Count(piece),
                .a = rows_.At(at.row),
                .b = columns_.At(at.col),
                .last = FirstLanes(at.cols - (vectors - 1) * kLanes)};
    if (piece > 0) block.before = sums_.From(at.row, at.col);
    block.to = finish ? FloatRows{done, kPanelCols} : sums_.From(at.row, at.col);
    MultiplyBlock<Words>(at.rows, vectors, block);
    if (!finish) return;
    FinishBlock(task_, {area_.row + at.row, area_.col + at.col, at.rows, at.cols}, done);
  }

  const GemmTask<float>& task_;
  const TileArea& area_;
  const Cut cut_;
  Rows rows_;
  TileColumns<Words> columns_;
  FloatRows sums_;
};

template <class Body>
void OnWords(FactorType type, const Body& body) {
  if (type == FactorType::kFp32) return body(FloatWords());
  body(Bf16Words());
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

void MultiplyPanels(const GemmTask<float>& task, const PanelFactor& a, const PanelFactor& b,
                    const PackedLine* packed, const TileArea& tile) {
  DT_CHECK(packed == nullptr || tile.col % kPanelCols == 0);
  OnWords(TypeOf(task), [&]<class Words>(Words) {
    if (a.as_columns) {
      return Tile<Words, PackedTileRows<Words>>(task, a, b, packed, tile).Multiply();
    }
    Tile<Words, TileRows<Words>>(task, a, b, packed, tile).Multiply();
  });
}

}  // namespace dt
