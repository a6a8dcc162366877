#include "common/base/philox.h"

#include <cmath>
#include <numbers>

#include "common/base/hash.h"

namespace dt {

uint64_t StreamKey(uint64_t seed, uint64_t purpose, uint64_t a, uint64_t b) {
  return MixBits(MixBits(MixBits(MixBits(seed + 0x9e3779b97f4a7c15ull) ^ purpose) + a) ^
                 (b << 1 | 1));
}

namespace {

// Fills `out` with values [begin, begin + size), which `of` makes four at a time.
void FillBlocks(std::span<float> out, uint64_t begin, const auto& of) {
  for (uint64_t block = begin / 4, i = 0; i < out.size(); ++block) {
    const std::array<float, 4> values = of(block);
    for (uint64_t j = block * 4 < begin ? begin % 4 : 0; j < 4 && i < out.size(); ++j) {
      out[i++] = values[j];
    }
  }
}

}  // namespace

void FillNormal(uint64_t stream, uint64_t row, std::span<float> out, uint64_t begin) {
  FillBlocks(out, begin, [&](uint64_t block) {
    const PhiloxBlock bits = Philox(stream, row, block);
    std::array<float, 4> values;
    for (size_t pair = 0; pair < 2; ++pair) {
      const double u = (static_cast<double>(bits[2 * pair]) + 1.0) * 0x1.0p-32;  // (0, 1]
      const double v = static_cast<double>(bits[2 * pair + 1]) * 0x1.0p-32;
      const double radius = std::sqrt(-2.0 * std::log(u));
      const double angle = 2.0 * std::numbers::pi * v;
      values[2 * pair] = static_cast<float>(radius * std::cos(angle));
      values[2 * pair + 1] = static_cast<float>(radius * std::sin(angle));
    }
    return values;
  });
}

void FillUniform(uint64_t stream, uint64_t row, std::span<float> out, uint64_t begin) {
  FillBlocks(out, begin, [&](uint64_t block) {
    const PhiloxBlock bits = Philox(stream, row, block);
    std::array<float, 4> values;
    for (size_t j = 0; j < 4; ++j) values[j] = 2.0f * ToUniform(bits[j]) - 1.0f;
    return values;
  });
}

}  // namespace dt
