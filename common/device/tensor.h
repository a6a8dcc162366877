// Element types, and views of tensors in host memory. A view does not own its data, which is
// row-major and densely packed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/check.h"

namespace dt {

// kF64 is only for gradient checks in tests. kBf16 is the upper half of a float, as u16
// (base/float_formats.h).
enum class DType : uint8_t { kF32, kF64, kU32, kBf16 };

constexpr size_t SizeOf(DType dtype) {
  if (dtype == DType::kF64) return 8;
  return dtype == DType::kBf16 ? 2 : 4;
}
std::string_view NameOf(DType dtype);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};
template <>
struct DTypeOf<uint32_t> {
  static constexpr DType value = DType::kU32;
};

using Shape = std::vector<int64_t>;
inline int64_t ElementCount(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t d : shape) count *= d;
  return count;
}

struct TensorView {
  DType dtype = DType::kF32;
  Shape shape;
  void* data = nullptr;

  int64_t size() const { return ElementCount(shape); }
  int64_t dim(size_t i) const { return shape[i]; }
  size_t bytes() const { return static_cast<size_t>(size()) * SizeOf(dtype); }
  template <class T>
  std::span<T> as() const {
    DT_CHECK(dtype == DTypeOf<T>::value);
    return {static_cast<T*>(data), static_cast<size_t>(size())};
  }
};

}  // namespace dt
