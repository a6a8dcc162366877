// One block of C on one thread: its sums, computed in registers, and its epilogue. Part of
// panel_product_cpu.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <immintrin.h>

#include "ops/gemm/gemm_tiles_cpu.h"
#include "ops/gemm/panel_packing_cpu.h"

namespace dt::panels {

// A block is 6 rows by four vectors, 24 of the 32 registers. Each word of A is loaded for four
// products, each vector of B for six.
inline constexpr size_t kVectors = kPanelCols / kLanes;
inline constexpr __mmask16 kAllLanes = 0xffff;

// ------------------------------------------------------------ sums

// Words of a factor A, and where the word of row r and step s is.
struct RowWords {
  const std::byte* begin = nullptr;
  size_t row = 0, step = 0;  // Bytes from one row, or step, to the next.
  bool half = false;         // The last step has only one term, so a whole word must not be read.
};

// Rows of floats.
struct FloatRows {
  float* begin = nullptr;
  size_t stride = 0;

  float* At(size_t r, size_t j) const { return begin + r * stride + j; }
  FloatRows From(size_t r, size_t j) const { return {At(r, j), stride}; }
};

// A block of C: where its sums go, and the factors they are computed from.
struct Block {
  size_t steps = 0;
  RowWords a;
  const uint32_t* b = nullptr;
  FloatRows before;  // Sums of earlier pieces, if any.
  FloatRows to;
  __mmask16 last = 0;  // Lanes of the last vector of a row.
};

// Avoids masked stores where possible: they are slow, and their result can only be read late.
DT_AVX512 __attribute__((always_inline)) inline void StoreLanes(float* to, __mmask16 lanes,
                                                                __m512 values) {
  if (lanes == kAllLanes) {
    _mm512_storeu_ps(to, values);
  } else {
    _mm512_mask_storeu_ps(to, lanes, values);
  }
}

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
    for (int v = 0; v < vectors; ++v) sum[r][v] = _mm512_setzero_ps();
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
      const __mmask16 lanes = v == vectors - 1 ? block.last : kAllLanes;
      const size_t row = static_cast<size_t>(r);
      if (block.before.begin != nullptr) {
        const float* const before = block.before.At(row, v * kLanes);
        sum[r][v] = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, before), sum[r][v]);
      }
      StoreLanes(block.to.At(row, v * kLanes), lanes, sum[r][v]);
    }
  }
}

// Dispatches to a kernel compiled for these numbers of rows and vectors, at most kBlockRows and
// kVectors.
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

// ------------------------------------------------------------ epilogue

DT_AVX512 inline __m512 KeepAbove0(__m512 by, __m512 c) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(by, _mm512_setzero_ps(), _CMP_GT_OQ), c);
}

// The elements of C at `at`, a vector of a row, whose sums are `c`.
DT_AVX512 inline __m512 Finished(const GemmEpilogue<float>& epilogue, size_t at, __mmask16 lanes,
                                 __m512 bias, __m512 c) {
  if (epilogue.bias != nullptr) c = _mm512_add_ps(c, bias);
  // max(NaN, 0) returns the second operand, 0.
  if (epilogue.relu) c = _mm512_max_ps(c, _mm512_setzero_ps());
  if (epilogue.above0 != nullptr) {
    c = KeepAbove0(_mm512_maskz_loadu_ps(lanes, epilogue.above0 + at), c);
  }
  if (epilogue.bf16_above0 != nullptr) {
    const __m256i bits = _mm256_maskz_loadu_epi16(lanes, epilogue.bf16_above0 + at);
    c = KeepAbove0(_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16)), c);
  }
  return c;
}

DT_AVX512 inline void Put(const GemmTask<float>& task, size_t at, __mmask16 lanes, __m512 c) {
  if (task.c != nullptr) StoreLanes(task.c + at, lanes, c);
  if (task.epilogue.bf16_c == nullptr) return;
  uint16_t* const to = task.epilogue.bf16_c + at;
  const auto rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(c));
  if (lanes == kAllLanes) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), rounded);
  } else {
    _mm256_mask_storeu_epi16(to, lanes, rounded);
  }
}

// Sums over the rows of a vector of columns. Written to memory after each block of kSumRows rows.
struct ColumnSums {
  const RowSums<float>& all;
  size_t col;
  __mmask16 lanes;
  __m512 sum = {};
  float* piece = nullptr;

  DT_AVX512 void Add(size_t row, __m512 c) {
    float* const now = all.PieceOf(row) + col;
    if (now != piece) {
      Put();
      piece = now;
      sum = row % kSumRows == 0 ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(lanes, piece);
    }
    sum = _mm512_add_ps(sum, c);
  }
  DT_AVX512 void Put() const {
    if (piece != nullptr) StoreLanes(piece, lanes, sum);
  }
};

// FinishRow for each row of a block, whose sums are `values`, [rows, kPanelCols].
DT_AVX512 inline void FinishBlock(const GemmTask<float>& task, const TileArea& block,
                                  const float* values) {
  const GemmEpilogue<float>& epilogue = task.epilogue;
  for (size_t j = 0; j < block.cols; j += kLanes) {
    const __mmask16 lanes = FirstLanes(block.cols - j);
    const size_t col = block.col + j;
    ColumnSums sums{epilogue.sums, col, lanes};
    __m512 bias = _mm512_setzero_ps();
    // Never load from nullptr, not even with an empty mask: a suppressed fault costs hundreds of
    // cycles.
    if (epilogue.bias != nullptr) bias = _mm512_maskz_loadu_ps(lanes, epilogue.bias + col);
    for (size_t r = 0; r < block.rows; ++r) {
      const size_t row = block.row + r, at = row * task.shape.n + col;
      const __m512 c =
          Finished(epilogue, at, lanes, bias, _mm512_load_ps(values + r * kPanelCols + j));
      if (epilogue.sums.parts != nullptr) sums.Add(row, c);
      Put(task, at, lanes, c);
    }
    sums.Put();
  }
}

}  // namespace dt::panels
