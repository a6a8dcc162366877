#include "common/base/philox.h"

#include <cmath>
#include <numbers>

#include "common/base/hash.h"

namespace dt {

uint64_t StreamKey(uint64_t seed, uint64_t purpose, uint64_t a, uint64_t b) {
  return MixBits(MixBits(MixBits(MixBits(seed + 0x9e3779b97f4a7c15ull) ^ purpose) + a) ^
                 (b << 1 | 1));
}

void FillNormal(uint64_t stream, uint64_t row, std::span<float> out) {
  for (size_t i = 0; i < out.size(); i += 4) {
    const PhiloxBlock bits = Philox(stream, row, i / 4);
    for (size_t pair = 0; pair < 2; ++pair) {
      const double u = (static_cast<double>(bits[2 * pair]) + 1.0) * 0x1.0p-32;  // (0, 1]
      const double v = static_cast<double>(bits[2 * pair + 1]) * 0x1.0p-32;
      const double radius = std::sqrt(-2.0 * std::log(u));
      const double angle = 2.0 * std::numbers::pi * v;
      const size_t at = i + 2 * pair;
      if (at < out.size()) out[at] = static_cast<float>(radius * std::cos(angle));
      if (at + 1 < out.size()) out[at + 1] = static_cast<float>(radius * std::sin(angle));
    }
  }
}

void FillUniform(uint64_t stream, uint64_t row, std::span<float> out) {
  for (size_t i = 0; i < out.size(); i += 4) {
    const PhiloxBlock bits = Philox(stream, row, i / 4);
    for (size_t j = i; j < out.size() && j < i + 4; ++j) {
      out[j] = 2.0f * ToUniform(bits[j - i]) - 1.0f;
    }
  }
}

}  // namespace dt
