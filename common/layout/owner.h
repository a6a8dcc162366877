// How pieces of work, such as the slices of a step or the stripes of the data, are dealt.
#pragma once

#include <cstdint>

namespace dt {

// The one of `owners` that has this one of `pieces`: each owner has consecutive ones, and no two
// differ by more than one piece.
constexpr uint32_t OwnerOf(uint64_t piece, uint64_t pieces, uint64_t owners) {
  return static_cast<uint32_t>(piece * owners / pieces);
}

}  // namespace dt
