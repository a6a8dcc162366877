// Tiles of products C [m, n] = op(A) [m, k] · op(B) [k, n] of floats, for processors with AVX-512.
// After K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): B
// is packed into panels of columns by pieces of k, and blocks of C are summed up in registers. A is
// packed only if it lies turned: else the words of its rows are taken where they lie. Sums are
// float, and their order depends on k alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/gemm/compiled_product_cpu.h"
#include "ops/gemm/gemm_tiles_cpu.h"

namespace dt {

// A factor: rows of op(A) or columns of op(B), each a line of k numbers. They lie one after the
// other, or across: as [k, lines]. Floats or bf16, the other one is nullptr; floats are rounded to
// bf16 on their way into a product of kBf16. REQUIRES: floats for kFp32.
struct PanelFactor {
  const float* wide = nullptr;
  const uint16_t* bf16 = nullptr;
  size_t lines = 0, k = 0;
  bool across = false;
};

inline constexpr size_t kPanelCols = 64, kBlockRows = 6;

// A line of the cache: packed factors are made of these.
struct alignas(64) PackedLine {
  uint32_t words[16];
};

inline FactorType TypeOf(const GemmTask<float>& task) {
  return task.math == GemmMath::kFp32 ? FactorType::kFp32 : FactorType::kBf16;
}

// B takes n · k / 16 lines when packed, half of it as kBf16, and what fills it up.
size_t PackedLines(FactorType type, size_t n, size_t k);
// Parts in which it is packed, each on its own: [0, PackedParts) make it whole. REQUIRES:
// HasAvx512(), for kBf16 MultipliesBf16().
size_t PackedParts(FactorType type, size_t k);
void PackPart(FactorType type, const PanelFactor& b, size_t part, PackedLine* packed);

// One tile of C, on one thread. `packed` is B as a whole; nullptr: its columns are packed here, for
// this tile. REQUIRES: as PackPart; if it is packed, tile.col is a multiple of kPanelCols.
void MultiplyPanels(const GemmTask<float>& task, const PanelFactor& a, const PanelFactor& b,
                    const PackedLine* packed, const TileArea& tile);

}  // namespace dt
