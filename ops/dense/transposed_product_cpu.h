// Products C [m, n] = Aᵀ·B of two matrices that lie as [k, m] and [k, n], as gradients of weights
// are, for processors with AVX-512. After K. Goto and R. van de Geijn, "Anatomy of High-Performance
// Matrix Multiplication" (2008): both factors are packed into panels by pieces of k, and blocks of
// C are summed up in registers. Sums are float, and their order depends on k alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/dense/compiled_product_cpu.h"
#include "ops/dense/gemm_cpu.h"

namespace dt {

// Dense rows of floats or of bf16; the other one is nullptr. Floats are rounded to bf16 on their
// way into a product of kBf16. REQUIRES: floats for kFp32.
struct FactorRows {
  const float* wide = nullptr;
  const uint16_t* bf16 = nullptr;
  size_t rows = 0, cols = 0;
};

// A line of the cache: packed factors are made of these.
struct alignas(64) PackedLine {
  uint32_t words[16];
};

// B takes k · n / 16 lines when packed, half of it as kBf16, and what fills it up.
size_t PackedLines(FactorType type, const FactorRows& b);
// Pieces of k in which B is packed, each on its own: [0, PackedPieces) make it whole. REQUIRES:
// HasAvx512(), for kBf16 MultipliesBf16().
size_t PackedPieces(FactorType type, size_t k);
void PackPiece(FactorType type, const FactorRows& b, size_t piece, PackedLine* packed);

// One tile of C, on one thread. `packed` is B as a whole; nullptr: its columns are packed here, for
// this tile. REQUIRES: as PackPiece; tile.col is a multiple of kPanelCols.
inline constexpr size_t kPanelCols = 48;
void MultiplyTransposed(FactorType type, const FactorRows& a, const FactorRows& b,
                        const PackedLine* packed, const GemmTile<float>& tile);

}  // namespace dt
