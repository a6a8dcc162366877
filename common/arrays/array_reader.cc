#include "common/arrays/array_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/arrays/array_forms.h"
#include "common/base/check.h"
#include "common/base/float_formats.h"

namespace dt {
namespace {

using Type = ArrayReader::Type;

// Calls take(i, value) with the elements from `first` on, as numbers of type T.
template <class T, class Take>
void ForEachElement(const ArrayReader::Array& array, uint64_t first, uint64_t count,
                    const Take& take) {
  const std::byte* at = array.data.data() + first * sizeof(T);
  for (uint64_t i = 0; i < count; ++i, at += sizeof(T)) {
    T value;
    std::memcpy(&value, at, sizeof(T));
    take(i, value);
  }
}

template <class T>
bool CopyKeys(const ArrayReader::Array& array, uint64_t first, std::span<Key> out) {
  bool negative = false;
  ForEachElement<T>(array, first, out.size(), [&](uint64_t i, T value) {
    negative = negative || value < T{0};
    out[i] = static_cast<Key>(value);
  });
  return !negative;
}

}  // namespace

uint64_t ArrayReader::Array::elements() const {
  uint64_t elements = 1;
  for (const uint64_t dim : shape) elements *= dim;
  return elements;
}

uint64_t BytesOfElement(Type type) {
  switch (type) {
    case Type::kF64:
    case Type::kI64:
    case Type::kU64:
      return 8;
    case Type::kF32:
    case Type::kI32:
    case Type::kU32:
      return 4;
    case Type::kF16:
    case Type::kBf16:
      return 2;
    case Type::kOther:
      return 0;
  }
  DT_UNREACHABLE();
}

bool Fits(const ArrayReader::Array& array) {
  const uint64_t each = BytesOfElement(array.type);
  if (each == 0) return true;
  uint64_t elements = 1;
  for (const uint64_t dim : array.shape) {
    if (dim == 0) return array.data.empty();
    if (elements > array.data.size() / dim) return false;
    elements *= dim;
  }
  return elements * each == array.data.size();
}

Result<ArrayReader> ArrayReader::Open(const std::string& path) {
  ArrayReader reader;
  reader.path_ = path;
  DT_TRY(reader.file_, MappedFile::Open(path));
  const std::span<const std::byte> bytes = reader.file_->bytes();
  auto arrays = LooksLikeZip(bytes) ? ReadNpz(bytes) : ReadSafetensors(bytes);
  if (!arrays.ok()) return WithWhere(arrays.status(), path);
  reader.arrays_ = *std::move(arrays);
  std::ranges::sort(reader.arrays_, {}, &Array::name);
  const auto twice = std::ranges::adjacent_find(reader.arrays_, {}, &Array::name);
  if (twice != reader.arrays_.end()) {
    return WithWhere(Malformed("it has two arrays {}", twice->name), path);
  }
  return reader;
}

const ArrayReader::Array* ArrayReader::Find(std::string_view name) const {
  const auto at = std::ranges::lower_bound(
      arrays_, name, {}, [](const Array& array) { return std::string_view(array.name); });
  return at != arrays_.end() && at->name == name ? &*at : nullptr;
}

Status ArrayReader::ReadFloats(const Array& array, uint64_t first, std::span<float> out) const {
  const uint64_t count = out.size();
  DT_CHECK(first + count <= array.elements());
  switch (array.type) {
    case Type::kF32:
      std::memcpy(out.data(), array.data.data() + first * sizeof(float), out.size_bytes());
      return OkStatus();
    case Type::kF64:
      ForEachElement<double>(array, first, count,
                             [&](uint64_t i, double value) { out[i] = static_cast<float>(value); });
      return OkStatus();
    case Type::kF16:
    case Type::kBf16:
      DecodeRow(array.type == Type::kF16 ? FloatFormat::kFp16 : FloatFormat::kBf16,
                array.data.data() + first * 2, out);
      return OkStatus();
    default:
      return WithWhere(
          Malformed("array {} is of type {}, expected floats", array.name, array.type_name), path_);
  }
}

Status ArrayReader::ReadKeys(const Array& array, uint64_t first, std::span<Key> out) const {
  DT_CHECK(first + out.size() <= array.elements());
  bool right = true;
  switch (array.type) {
    case Type::kU64:
      right = CopyKeys<uint64_t>(array, first, out);
      break;
    case Type::kI64:
      right = CopyKeys<int64_t>(array, first, out);
      break;
    case Type::kU32:
      right = CopyKeys<uint32_t>(array, first, out);
      break;
    case Type::kI32:
      right = CopyKeys<int32_t>(array, first, out);
      break;
    default:
      return WithWhere(
          Malformed("array {} is of type {}, expected whole numbers", array.name, array.type_name),
          path_);
  }
  if (right) return OkStatus();
  return WithWhere(Malformed("array {} has a negative key", array.name), path_);
}

}  // namespace dt
