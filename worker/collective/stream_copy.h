// Copies large memory past the cache: the lines that are written are not read from memory first,
// and what the cache holds stays there. Slower for what fits into the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace dt::worker {

// Where it pays, as measured (docs/performance.md, "Collectives"): at 8 MiB it was slower.
inline constexpr size_t kStreamBytes = size_t{32} << 20;

inline void StreamCopy(std::byte* to, const std::byte* from, size_t count) {
#if defined(__SSE2__)
  constexpr size_t kLineBytes = 64;
  const size_t head = (kLineBytes - reinterpret_cast<uintptr_t>(to) % kLineBytes) % kLineBytes;
  if (count < head + kLineBytes) {
    std::memcpy(to, from, count);
    return;
  }
  std::memcpy(to, from, head);
  to += head, from += head, count -= head;
  for (; count >= kLineBytes; to += kLineBytes, from += kLineBytes, count -= kLineBytes) {
    __m128i line[4];
    std::memcpy(line, from, kLineBytes);
    for (int i = 0; i < 4; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i, line[i]);
  }
  _mm_sfence();
#endif
  std::memcpy(to, from, count);
}

}  // namespace dt::worker
