// Vectors of 8 floats for panel products: AVX2, which all processors have that the program runs on.
// Part of panel_product_avx2.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <immintrin.h>

#include "ops/gemm/gemm_tiles_cpu.h"
#include "ops/gemm/panel_product_cpu.h"

namespace dt::panels::avx2 {

// A block of C is 6 rows by two vectors, 12 of the 16 registers.
inline constexpr size_t kLanes = 8, kPanelCols = 16, kBlockRows = 6;
// Rows of a tile of a tall result. They stay in the second-level cache, beside a group of panels.
inline constexpr size_t kTallRows = 128;
// The epilogue is applied to whole tiles: a block's rows are too short for it.
inline constexpr bool kFinishesBlocks = false;

// ------------------------------------------------------------ vectors of floats

using Floats = __m256;
using Words = __m256i;
using Lanes = size_t;  // The number of lanes used, from the first one on.

inline constexpr Lanes kAllLanes = 8;
inline Lanes FirstLanes(size_t n) { return n < 8 ? n : 8; }
// All bits of the first n lanes.
inline __m256i MaskOf(size_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

inline Floats Zeros() { return _mm256_setzero_ps(); }
inline Floats Load(const float* from, Lanes lanes) {
  return lanes == kAllLanes ? _mm256_loadu_ps(from) : _mm256_maskload_ps(from, MaskOf(lanes));
}
// Masked stores take many cycles on some processors.
inline void Store(float* to, Lanes lanes, Floats values) {
  if (lanes == kAllLanes) return _mm256_storeu_ps(to, values);
  alignas(32) float all[8];
  _mm256_store_ps(all, values);
  for (size_t i = 0; i < lanes; ++i) to[i] = all[i];
}
inline Floats Sum(Floats a, Floats b) { return _mm256_add_ps(a, b); }

inline __m128i Load16(const uint16_t* from, size_t n) {
  if (n == 8) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  alignas(16) uint16_t all[8] = {};
  std::memcpy(all, from, n * sizeof(uint16_t));
  return _mm_load_si128(reinterpret_cast<const __m128i*>(all));
}
inline Floats LoadBf16(const uint16_t* from, Lanes lanes) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(Load16(from, lanes)), 16));
}
// Rounded to the nearest bf16, ties to even, and widened again.
inline Floats Rounded(Floats values) {
  const __m256i bits = _mm256_castps_si256(values);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const Floats nearest =
      _mm256_castsi256_ps(_mm256_and_si256(up, _mm256_set1_epi32(static_cast<int>(0xffff0000))));
  // The addition above could turn a NaN into a number.
  const Floats is_none = _mm256_cmp_ps(values, values, _CMP_UNORD_Q);
  return _mm256_blendv_ps(nearest, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)), is_none);
}

inline Words LoadWords(const uint32_t* from) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
}
inline Words AllWords(const std::byte* from) {
  int word;
  std::memcpy(&word, from, sizeof(word));
  return _mm256_set1_epi32(word);
}
inline Floats AddFloats(Floats sum, Words a, Words b) {
  return _mm256_fmadd_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), sum);
}

// ------------------------------------------------------------ packing, eight lines at a time

using EightWords = __m256i;

inline EightWords Take8(const float* from, size_t n) {
  return _mm256_castps_si256(Load(from, FirstLanes(n)));
}
// One float of each of n lines that are k floats apart.
inline EightWords Gather8(const float* from, size_t k, size_t n) {
  if (n == 8) {
    return _mm256_castps_si256(_mm256_setr_ps(from[0], from[k], from[2 * k], from[3 * k],
                                              from[4 * k], from[5 * k], from[6 * k], from[7 * k]));
  }
  alignas(32) float all[8] = {};
  for (size_t i = 0; i < n; ++i) all[i] = from[i * k];
  return _mm256_castps_si256(_mm256_load_ps(all));
}
inline void Store8(uint32_t* to, EightWords words) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), words);
}

// ------------------------------------------------------------ rounded words

// A word is a float that was rounded to bf16: the processor multiplies no bf16.
struct RoundedWords {
  static constexpr size_t kTerms = 1, kAhead = 32;
  using Term = float;

  static EightWords FromColumns(const PanelFactor& from, size_t step, size_t line, size_t n) {
    const size_t at = step * from.lines + line;
    if (from.bf16 != nullptr) {
      __builtin_prefetch(from.bf16 + at + kAhead * from.lines);
      return _mm256_castps_si256(LoadBf16(from.bf16 + at, n));
    }
    __builtin_prefetch(from.wide + at + kAhead * from.lines);
    return _mm256_castps_si256(Rounded(Load(from.wide + at, n)));
  }
  static EightWords FromRows(const PanelFactor& from, size_t step, size_t line, size_t n) {
    const size_t at = line * from.k + step;
    if (from.bf16 == nullptr) {
      const EightWords floats = Gather8(from.wide + at, from.k, n);
      return _mm256_castps_si256(Rounded(_mm256_castsi256_ps(floats)));
    }
    alignas(32) uint32_t words[8] = {};
    for (size_t i = 0; i < n; ++i) words[i] = uint32_t{from.bf16[at + i * from.k]} << 16;
    return LoadWords(words);
  }
  static Floats AddProduct(Floats sum, Words a, Words b) { return AddFloats(sum, a, b); }

  // Terms [at, at + count) of the factor's lines.
  static const Term* TermsOf(const PanelFactor& from, size_t at, size_t count) {
    const WorkSpan span(kPackingWork);
    kPackingWork.Count(8 * count);
    Term* const terms = TileBuffer<Term, Purpose::kRows>(count);
    for (size_t i = 0; i < count; i += 8) {
      const Lanes lanes = FirstLanes(count - i);
      Store(terms + i, lanes,
            from.bf16 != nullptr ? LoadBf16(from.bf16 + at + i, lanes)
                                 : Rounded(Load(from.wide + at + i, lanes)));
    }
    return terms;
  }
};

// ------------------------------------------------------------ epilogue

// FinishRow for each row of an area of C, whose sums are `values`, with rows `stride` apart.
inline void Finish(const GemmTask<float>& task, const TileArea& area, float* values,
                   size_t stride) {
  for (size_t r = 0; r < area.rows; ++r) {
    FinishRow(task, area.row + r, area.col, area.cols, values + r * stride);
  }
}

}  // namespace dt::panels::avx2
