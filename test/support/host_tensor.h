// A tensor with memory of its own.
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "common/base/float_formats.h"
#include "common/device/tensor.h"

namespace dt::test {

struct HostTensor {
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<std::byte> bytes;

  // A tensor of zeros.
  static HostTensor Of(DType dtype, Shape shape) {
    HostTensor tensor{dtype, std::move(shape), {}};
    tensor.bytes.resize(tensor.size() * SizeOf(dtype));
    return tensor;
  }
  static HostTensor Copy(const TensorView& of) {
    HostTensor tensor = Of(of.dtype, of.shape);
    if (!tensor.bytes.empty()) std::memcpy(tensor.bytes.data(), of.data, tensor.bytes.size());
    return tensor;
  }
  TensorView view() { return {dtype, shape, bytes.data()}; }
  double at(size_t i) const {
    if (dtype == DType::kU32) return reinterpret_cast<const uint32_t*>(bytes.data())[i];
    if (dtype == DType::kBf16) return FromBf16(reinterpret_cast<const uint16_t*>(bytes.data())[i]);
    if (dtype == DType::kF64) return reinterpret_cast<const double*>(bytes.data())[i];
    return reinterpret_cast<const float*>(bytes.data())[i];
  }
  // REQUIRES: f32, f64 or u32.
  void set(size_t i, double value) {
    if (dtype == DType::kF64) {
      reinterpret_cast<double*>(bytes.data())[i] = value;
    } else if (dtype == DType::kU32) {
      reinterpret_cast<uint32_t*>(bytes.data())[i] = static_cast<uint32_t>(value);
    } else {
      reinterpret_cast<float*>(bytes.data())[i] = static_cast<float>(value);
    }
  }
  size_t size() const { return static_cast<size_t>(ElementCount(shape)); }
  friend bool operator==(const HostTensor&, const HostTensor&) = default;
};

}  // namespace dt::test
