// The arrays in the bytes of a file; the errors do not name it.
#pragma once

#include <span>
#include <vector>

#include "common/arrays/array_reader.h"

namespace dt {

Result<std::vector<ArrayReader::Array>> ReadSafetensors(std::span<const std::byte> bytes);
// Of a zip archive, its members that end with ".npy".
Result<std::vector<ArrayReader::Array>> ReadNpz(std::span<const std::byte> bytes);
bool LooksLikeZip(std::span<const std::byte> bytes);

// Whether the data has just as many bytes as type and shape say; of an unknown type, true.
bool Fits(const ArrayReader::Array& array);
uint64_t BytesOfElement(ArrayReader::Type type);  // 0: unknown.

}  // namespace dt
