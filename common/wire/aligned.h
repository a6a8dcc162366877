// FlatBuffers' verifier checks where the length of a vector lies, but not that its items of eight
// bytes lie at multiples of eight: bytes of a stranger may place them anywhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dt {

// Whether the items of a verified vector may be read in place. Without items there is nothing to
// read, and the end of an empty vector may lie anywhere.
template <class Vector>
bool HasAlignedItems(const Vector& vector, size_t alignment) {
  return vector.size() == 0 || reinterpret_cast<uintptr_t>(vector.Data()) % alignment == 0;
}

}  // namespace dt
