// Tiles of products C [m, n] = op(A) [m, k] · op(B) [k, n] of floats, for processors with AVX-512.
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

inline constexpr size_t kPanelCols = 64, kBlockRows = 6;

// A cache line; packed factors consist of these.
struct alignas(64) PackedLine {
  uint32_t words[16];
};

inline FactorType TypeOf(const GemmTask<float>& task) {
  return task.math == GemmMath::kFp32 ? FactorType::kFp32 : FactorType::kBf16;
}

// Number of lines of a packed B: n · k / 16, half of it for kBf16, plus padding.
size_t PackedLines(FactorType type, size_t n, size_t k);
// Number of parts that can be packed independently; parts [0, PackedParts) make up B. REQUIRES:
// HasAvx512(), and for kBf16 MultipliesBf16().
size_t PackedParts(FactorType type, size_t k);
void PackPart(FactorType type, const PanelFactor& b, size_t part, PackedLine* packed);

// Computes one tile of C on one thread. `packed`: all of B; if nullptr, B's columns are packed here
// for this tile. REQUIRES: as PackPart; with `packed`, tile.col is a multiple of kPanelCols.
void MultiplyPanels(const GemmTask<float>& task, const PanelFactor& a, const PanelFactor& b,
                    const PackedLine* packed, const TileArea& tile);

}  // namespace dt
