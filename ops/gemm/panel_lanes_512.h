// Vectors of 16 floats for panel products: AVX-512. To be used only if HasAvx512(), and what has to
// do with bf16 if MultipliesBf16(). Part of panel_product_avx512.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <immintrin.h>

#include "ops/gemm/gemm_tiles_cpu.h"
#include "ops/gemm/panel_product_cpu.h"

#define DT_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace dt::panels::avx512 {

// A block of C is 6 rows by four vectors, 24 of the 32 registers. Each word of A is loaded for four
// products, each vector of B for six.
inline constexpr size_t kLanes = 16, kPanelCols = 64, kBlockRows = 6;
// Rows of a tile of a tall result.
inline constexpr size_t kTallRows = 256;
// The epilogue is applied to each block while it is in the first-level cache, not to whole tiles.
inline constexpr bool kFinishesBlocks = true;

// ------------------------------------------------------------ vectors of floats

using Floats = __m512;
using Words = __m512i;
using Lanes = __mmask16;

inline constexpr Lanes kAllLanes = 0xffff;
inline Lanes FirstLanes(size_t n) { return static_cast<Lanes>(n >= 16 ? 0xffff : (1u << n) - 1); }

DT_AVX512 inline Floats Zeros() { return _mm512_setzero_ps(); }
DT_AVX512 inline Floats Load(const float* from, Lanes lanes) {
  return _mm512_maskz_loadu_ps(lanes, from);
}
// Avoids masked stores where possible: they are slow, and their result can only be read late.
DT_AVX512 __attribute__((always_inline)) inline void Store(float* to, Lanes lanes, Floats values) {
  if (lanes == kAllLanes) {
    _mm512_storeu_ps(to, values);
  } else {
    _mm512_mask_storeu_ps(to, lanes, values);
  }
}
DT_AVX512 inline Floats Sum(Floats a, Floats b) { return _mm512_add_ps(a, b); }

DT_AVX512 inline Words LoadWords(const uint32_t* from) { return _mm512_load_si512(from); }
DT_AVX512 inline Words AllWords(const std::byte* from) {
  int word;
  std::memcpy(&word, from, sizeof(word));
  return _mm512_set1_epi32(word);
}

// ------------------------------------------------------------ packing, eight lines at a time

using EightWords = __m256i;

inline __mmask8 FirstOf8(size_t n) { return static_cast<__mmask8>(FirstLanes(n < 8 ? n : 8)); }

DT_AVX512 inline __m256i LineStarts(size_t k) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_mullo_epi32(lanes, _mm256_set1_epi32(static_cast<int>(k)));
}
DT_AVX512 inline EightWords Take8(const float* from, size_t n) {
  return _mm256_maskz_loadu_epi32(FirstOf8(n), from);
}
// One float of each of n lines that are k floats apart.
DT_AVX512 inline EightWords Gather8(const float* from, size_t k, size_t n) {
  return _mm256_mmask_i32gather_epi32(_mm256_setzero_si256(), FirstOf8(n), LineStarts(k), from,
                                      sizeof(float));
}
DT_AVX512 inline void Store8(uint32_t* to, EightWords words) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), words);
}

DT_AVX512 inline Floats AddFloats(Floats sum, Words a, Words b) {
  return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
}

// ------------------------------------------------------------ rounded words

// A word is the bf16 of two terms, the earlier one in the low half.
struct RoundedWords {
  static constexpr size_t kTerms = 2, kAhead = 16;
  using Term = uint16_t;

  DT_AVX512 static EightWords Pair(__m128i low, __m128i high) {
    return _mm256_or_si256(_mm256_cvtepu16_epi32(low),
                           _mm256_slli_epi32(_mm256_cvtepu16_epi32(high), 16));
  }
  DT_AVX512 static __m128i Rounded(EightWords floats) {
    return reinterpret_cast<__m128i>(_mm256_cvtneps_pbh(_mm256_castsi256_ps(floats)));
  }

  DT_AVX512 static __m128i TermFromColumns(const PanelFactor& from, size_t term, size_t line,
                                           size_t n) {
    if (term == from.k) return _mm_setzero_si128();
    const size_t at = term * from.lines + line;
    if (from.bf16 != nullptr) {
      __builtin_prefetch(from.bf16 + at + kAhead * from.lines);
      return _mm_maskz_loadu_epi16(FirstOf8(n), from.bf16 + at);
    }
    __builtin_prefetch(from.wide + at + kAhead * from.lines);
    return Rounded(Take8(from.wide + at, n));
  }
  DT_AVX512 static EightWords FromColumns(const PanelFactor& from, size_t step, size_t line,
                                          size_t n) {
    return Pair(TermFromColumns(from, 2 * step, line, n),
                TermFromColumns(from, 2 * step + 1, line, n));
  }
  DT_AVX512 static __m128i TermFromRows(const PanelFactor& from, size_t term, size_t line,
                                        size_t n) {
    if (term == from.k) return _mm_setzero_si128();
    const size_t at = line * from.k + term;
    if (from.bf16 == nullptr) return Rounded(Gather8(from.wide + at, from.k, n));
    alignas(16) uint16_t terms[8] = {};
    for (size_t i = 0; i < n; ++i) terms[i] = from.bf16[at + i * from.k];
    return _mm_load_si128(reinterpret_cast<const __m128i*>(terms));
  }
  DT_AVX512 static EightWords FromRows(const PanelFactor& from, size_t step, size_t line,
                                       size_t n) {
    return Pair(TermFromRows(from, 2 * step, line, n), TermFromRows(from, 2 * step + 1, line, n));
  }
  DT_AVX512 static Floats AddProduct(Floats sum, Words a, Words b) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }

  // Terms [at, at + count) of the factor's lines.
  static const Term* TermsOf(const PanelFactor& from, size_t at, size_t count) {
    if (from.bf16 != nullptr) return from.bf16 + at;
    const WorkSpan span(kPackingWork);
    kPackingWork.Count(6 * count);
    Term* const rounded = TileBuffer<Term, Purpose::kRows>(count);
    RoundToBf16({from.wide + at, count}, rounded);
    return rounded;
  }
};

// ------------------------------------------------------------ epilogue

// Multiplies lanes of c by `scale` where `by` is above 0; others become 0.
DT_AVX512 inline Floats KeepAbove0(Floats by, float scale, Floats c) {
  const Lanes kept = _mm512_cmp_ps_mask(by, _mm512_setzero_ps(), _CMP_GT_OQ);
  return _mm512_maskz_mul_ps(kept, c, _mm512_set1_ps(scale));
}

// The elements of C at `at`, a vector of a row, whose sums are `c`.
DT_AVX512 inline Floats Finished(const GemmEpilogue<float>& epilogue, size_t at, Lanes lanes,
                                 Floats bias, Floats c) {
  if (epilogue.bias != nullptr) c = Sum(c, bias);
  // max(NaN, 0) returns the second operand, 0.
  if (epilogue.relu) c = _mm512_max_ps(c, Zeros());
  const float scale = epilogue.scale;
  if (epilogue.above0 != nullptr) c = KeepAbove0(Load(epilogue.above0 + at, lanes), scale, c);
  if (epilogue.bf16_above0 != nullptr) {
    const __m256i bits = _mm256_maskz_loadu_epi16(lanes, epilogue.bf16_above0 + at);
    const auto by = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
    c = KeepAbove0(by, scale, c);
  }
  return c;
}

DT_AVX512 inline void Put(const GemmTask<float>& task, size_t at, Lanes lanes, Floats c) {
  if (task.c != nullptr) Store(task.c + at, lanes, c);
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
  Lanes lanes;
  Floats sum = {};
  float* piece = nullptr;

  DT_AVX512 void Add(size_t row, Floats c) {
    float* const now = all.PieceOf(row) + col;
    if (now != piece) {
      Put();
      piece = now;
      sum = row % kSumRows == 0 ? Zeros() : Load(piece, lanes);
    }
    sum = avx512::Sum(sum, c);
  }
  DT_AVX512 void Put() const {
    if (piece != nullptr) Store(piece, lanes, sum);
  }
};

// FinishRow for each row of an area of C, whose sums are `values`, with rows `stride` apart.
// REQUIRES: rows begin at cache lines, and have whole vectors.
DT_AVX512 inline void Finish(const GemmTask<float>& task, const TileArea& area, float* values,
                             size_t stride) {
  const GemmEpilogue<float>& epilogue = task.epilogue;
  for (size_t j = 0; j < area.cols; j += kLanes) {
    const Lanes lanes = FirstLanes(area.cols - j);
    const size_t col = area.col + j;
    ColumnSums sums{epilogue.sums, col, lanes};
    Floats bias = Zeros();
    // Never load from nullptr, not even with an empty mask: a suppressed fault costs hundreds of
    // cycles.
    if (epilogue.bias != nullptr) bias = Load(epilogue.bias + col, lanes);
    for (size_t r = 0; r < area.rows; ++r) {
      const size_t row = area.row + r, at = row * task.shape.n + col;
      const Floats c = Finished(epilogue, at, lanes, bias, _mm512_load_ps(values + r * stride + j));
      if (epilogue.sums.parts != nullptr) sums.Add(row, c);
      Put(task, at, lanes, c);
    }
    sums.Put();
  }
}

}  // namespace dt::panels::avx512
