// Tiles of products C [m, n] = op(A) [m, k] · op(B) [k, n] of floats.
// After K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): B
// is packed into panels of columns by pieces of k, and blocks of C are summed in registers. A is
// packed only if it is transposed; otherwise its words are read from its rows. Sums are float, and
// their order depends on k alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/gemm/compiled_product_cpu.h"
#include "ops/gemm/gemm_tiles_cpu.h"

namespace dt {

// A factor: rows of op(A) or columns of op(B), each a line of k numbers. Lines are stored one after
// the other, or with `as_columns` as the columns of [k, lines]. Either `wide` (floats) or `bf16` is
// set. For a product of kBf16, floats are rounded to bf16. REQUIRES: floats for kFp32.
struct PanelFactor {
  const float* wide = nullptr;
  const uint16_t* bf16 = nullptr;
  size_t lines = 0, k = 0;
  bool as_columns = false;
};

// A cache line; packed factors consist of these.
struct alignas(64) PackedLine {
  uint32_t words[16];
};

inline FactorType TypeOf(const GemmTask<float>& task) {
  return task.math == GemmMath::kFp32 ? FactorType::kFp32 : FactorType::kBf16;
}

// The functions for one set of instructions.
struct PanelProduct {
  size_t panel_cols = 0, block_rows = 0;  // Columns of a panel of B; rows of a block of C.
  size_t tile_rows = 0;                   // Rows of the tiles of a tall result.
  // Number of lines of a packed B: n · k / 16 words, each a float or two bf16, plus padding.
  size_t (*packed_lines)(FactorType type, size_t n, size_t k) = nullptr;
  // Number of parts that can be packed independently; all of them make up B.
  size_t (*packed_parts)(FactorType type, size_t k) = nullptr;
  void (*pack_part)(FactorType type, const PanelFactor& b, size_t part,
                    PackedLine* packed) = nullptr;
  // Computes one tile of C on one thread. `packed`: all of B; if nullptr, B's columns are packed
  // here for this tile. REQUIRES: with `packed`, tile.col is a multiple of panel_cols.
  void (*multiply)(const GemmTask<float>& task, const PanelFactor& a, const PanelFactor& b,
                   const PackedLine* packed, const TileArea& tile) = nullptr;
};
extern const PanelProduct kAvx2Product;
// REQUIRES: HasAvx512(), and for bf16 MultipliesBf16().
extern const PanelProduct kAvx512Product;

}  // namespace dt
