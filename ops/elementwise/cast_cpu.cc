#include "common/base/float_formats.h"
#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

// An element as stored in memory.
struct Bf16 {
  uint16_t bits;
};
float ToFloat(Bf16 x) { return FromBf16(x.bits); }
double ToFloat(double x) { return x; }
float ToFloat(float x) { return x; }

template <class To>
To FromFloat(double x) {
  return static_cast<To>(x);
}
// Rounds to the nearest, ties to even.
template <>
Bf16 FromFloat<Bf16>(double x) {
  const auto single = static_cast<float>(x);
  std::byte bytes[2];
  EncodeRow(FloatFormat::kBf16, std::span(&single, 1), bytes);
  Bf16 out;
  std::memcpy(&out, bytes, sizeof(out));
  return out;
}

// Calls body(T()) with the type of an element.
template <class Body>
void OnElement(DType dtype, Body&& body) {
  if (dtype == DType::kBf16) return body(Bf16());
  OnFloat(dtype, body);
}

void Cast(KernelContext& context) {
  const TensorView &in = context.in(0), &out = context.out(0);
  OnElement(in.dtype, [&]<class From>(From) {
    OnElement(out.dtype, [&]<class To>(To) {
      const auto* const x = static_cast<const From*>(in.data);
      auto* const y = static_cast<To*>(out.data);
      context.pool.ParallelFor(static_cast<size_t>(out.size()), kGrain,
                               [&](size_t begin, size_t end) {
                                 for (size_t i = begin; i < end; ++i)
                                   y[i] = FromFloat<To>(ToFloat(x[i]));
                               });
    });
  });
}

constexpr NamedKernel kKernels[] = {{"cast", Cast}};

}  // namespace

std::span<const NamedKernel> CastKernels() { return kKernels; }

}  // namespace dt
