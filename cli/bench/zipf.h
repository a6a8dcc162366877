// Keys as recommendation data has them: a few are in most samples, most are seen once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace dt {

// Draws ranks 1, 2, …, `keys` with probabilities that fall as rank^-exponent, by
// rejection-inversion (W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from
// monotone discrete distributions", 1996). REQUIRES: exponent is not 1.
class Zipf {
 public:
  Zipf(double keys, double exponent)
      : exponent_(exponent),
        low_(Integral(1.5) - 1),
        high_(Integral(keys + 0.5)),
        keys_(keys),
        sure_(2 - Inverse(Integral(2.5) - std::pow(2, -exponent))) {}

  // `uniform` returns numbers from [0, 1).
  template <class Uniform>
  uint64_t Draw(Uniform&& uniform) const {
    for (;;) {
      const double u = high_ + uniform() * (low_ - high_);
      const double x = Inverse(u);
      const double k = std::min(keys_, std::max(1.0, std::floor(x + 0.5)));
      if (k - x <= sure_ || u >= Integral(k + 0.5) - std::pow(k, -exponent_)) {
        return static_cast<uint64_t>(k);
      }
    }
  }

 private:
  double Integral(double x) const { return std::pow(x, 1 - exponent_) / (1 - exponent_); }
  double Inverse(double y) const { return std::pow((1 - exponent_) * y, 1 / (1 - exponent_)); }

  const double exponent_, low_, high_, keys_, sure_;
};

}  // namespace dt
