// Packing of factors into panels: what a word is, and where it goes. Part of panel_product_cpu.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <immintrin.h>

#include "ops/gemm/gemm_tiles_cpu.h"
#include "ops/gemm/panel_product_cpu.h"

// Requires HasAvx512(); instructions for bf16 are used only for factors of bf16.
#define DT_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace dt::panels {

// The largest number of steps in a piece. Few products have more; its panel takes at most 128 KB.
inline constexpr size_t kLanes = 16, kStepsMax = 512;

inline uint32_t* WordsOf(PackedLine* lines) { return reinterpret_cast<uint32_t*>(lines); }
inline const uint32_t* WordsOf(const PackedLine* lines) {
  return reinterpret_cast<const uint32_t*>(lines);
}
inline __mmask16 FirstLanes(size_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xffff : (1u << n) - 1);
}

// Divides k into steps of one word of each line, and the steps into pieces.
struct Cut {
  size_t steps, pieces, length;

  Cut(FactorType type, size_t k)
      : steps(DivideUp(k, type == FactorType::kFp32 ? 1 : 2)),
        pieces(std::max<size_t>(1, DivideUp(steps, kStepsMax))),
        length(DivideUp(steps, pieces)) {}

  size_t Count(size_t piece) const { return std::min(length, steps - piece * length); }
  // Size in words of one panel of `width` lines. The gap between panels prevents them from meeting
  // in one set of the cache.
  size_t Panel(size_t width) const { return DivideUp(length * width, kLanes) * kLanes + kLanes; }
  // Memory for panels of so many lines, whatever k is, so that the memory of threads does not grow
  // with it.
  static size_t BufferLines(size_t lines, size_t width) {
    return DivideUp(lines, width) * (kStepsMax * width / kLanes + 1);
  }
  // Start of the panels of a piece in a packed B of n columns.
  size_t Before(size_t piece, size_t n) const {
    return piece * DivideUp(n, kPanelCols) * Panel(kPanelCols);
  }
};

// ------------------------------------------------------------ words

// Packing handles words of eight lines at a time. If the lines are stored as columns, consecutive
// words of a line are far apart, so words that are packed later are prefetched.
inline constexpr size_t kPackLanes = 8;
inline __mmask8 FirstPackLanes(size_t n) {
  return static_cast<__mmask8>(FirstLanes(std::min(n, kPackLanes)));
}

DT_AVX512 inline __m256i LineStarts(size_t k) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_mullo_epi32(lanes, _mm256_set1_epi32(static_cast<int>(k)));
}

// The content of a word, and the product of two words.
struct FloatWords {  // A word is a float.
  static constexpr FactorType kType = FactorType::kFp32;
  static constexpr size_t kAhead = 32;

  DT_AVX512 static __m256i FromColumns(const PanelFactor& from, size_t step, size_t line,
                                       __mmask8 lanes) {
    const float* const at = from.wide + step * from.lines + line;
    __builtin_prefetch(at + kAhead * from.lines);
    return _mm256_maskz_loadu_epi32(lanes, at);
  }
  DT_AVX512 static __m256i FromRows(const PanelFactor& from, size_t step, size_t line,
                                    __mmask8 lanes) {
    return _mm256_mmask_i32gather_epi32(_mm256_setzero_si256(), lanes, LineStarts(from.k),
                                        from.wide + line * from.k + step, sizeof(float));
  }
  DT_AVX512 static __m512 Add(__m512 sum, __m512i a, __m512i b) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
  }
};
struct Bf16Words {  // A word is the bf16 of two terms, the earlier one in the low half.
  static constexpr FactorType kType = FactorType::kBf16;
  static constexpr size_t kAhead = 16;

  DT_AVX512 static __m256i Words(__m128i low, __m128i high) {
    return _mm256_or_si256(_mm256_cvtepu16_epi32(low),
                           _mm256_slli_epi32(_mm256_cvtepu16_epi32(high), 16));
  }
  DT_AVX512 static __m128i Rounded(__m256 floats) {
    return reinterpret_cast<__m128i>(_mm256_cvtneps_pbh(floats));
  }

  DT_AVX512 static __m128i TermFromColumns(const PanelFactor& from, size_t term, size_t line,
                                           __mmask8 lanes) {
    if (term == from.k) return _mm_setzero_si128();
    const size_t at = term * from.lines + line;
    if (from.bf16 != nullptr) {
      __builtin_prefetch(from.bf16 + at + kAhead * from.lines);
      return _mm_maskz_loadu_epi16(lanes, from.bf16 + at);
    }
    __builtin_prefetch(from.wide + at + kAhead * from.lines);
    return Rounded(_mm256_maskz_loadu_ps(lanes, from.wide + at));
  }
  DT_AVX512 static __m256i FromColumns(const PanelFactor& from, size_t step, size_t line,
                                       __mmask8 lanes) {
    return Words(TermFromColumns(from, 2 * step, line, lanes),
                 TermFromColumns(from, 2 * step + 1, line, lanes));
  }
  DT_AVX512 static __m128i TermFromRows(const PanelFactor& from, size_t term, size_t line,
                                        __mmask8 lanes) {
    if (term == from.k) return _mm_setzero_si128();
    const size_t at = line * from.k + term;
    if (from.bf16 != nullptr) {
      alignas(16) uint16_t terms[kPackLanes] = {};
      for (size_t i = 0; i < kPackLanes; ++i) {
        if ((lanes >> i & 1) != 0) terms[i] = from.bf16[at + i * from.k];
      }
      return _mm_load_si128(reinterpret_cast<const __m128i*>(terms));
    }
    return Rounded(_mm256_mmask_i32gather_ps(_mm256_setzero_ps(), lanes, LineStarts(from.k),
                                             from.wide + at, sizeof(float)));
  }
  DT_AVX512 static __m256i FromRows(const PanelFactor& from, size_t step, size_t line,
                                    __mmask8 lanes) {
    return Words(TermFromRows(from, 2 * step, line, lanes),
                 TermFromRows(from, 2 * step + 1, line, lanes));
  }
  DT_AVX512 static __m512 Add(__m512 sum, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};

// The range to pack: steps [begin, end) of a piece, of lines [first, first + count).
struct PackRange {
  size_t piece, begin, end;
  size_t first, count;
};
// Packs into panels of `width` lines, step by step; `to` is the first panel. Lanes beyond a panel's
// width are written too; the panel's next step overwrites them, or they are in the gap between
// panels.
template <class Words, size_t width, bool as_columns>
DT_AVX512 void Pack(const PanelFactor& from, const Cut& cut, const PackRange& range, uint32_t* to) {
  constexpr size_t kTogether = std::min(width, kPackLanes);
  const size_t begin = range.piece * cut.length, panel = cut.Panel(width);
  for (size_t s = range.begin; s < range.end; ++s) {
    for (size_t j = 0; j < range.count; j += kTogether) {
      const size_t line = range.first + j;
      const __mmask8 lanes = FirstPackLanes(from.lines - line);
      const __m256i words = as_columns ? Words::FromColumns(from, begin + s, line, lanes)
                                       : Words::FromRows(from, begin + s, line, lanes);
      uint32_t* const at = to + j / width * panel + s * width + j % width;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), words);
    }
  }
}

template <class Words, size_t width>
void Pack(const PanelFactor& from, const Cut& cut, const PackRange& range, uint32_t* to) {
  if (from.as_columns) return Pack<Words, width, true>(from, cut, range, to);
  Pack<Words, width, false>(from, cut, range, to);
}

}  // namespace dt::panels
