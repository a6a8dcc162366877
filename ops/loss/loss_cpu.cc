#include <cmath>

#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

constexpr size_t kPiece = 1024;

// log(1 + e^x) - x z without overflow: max(x, 0) - x z + log(1 + e^-|x|).
struct Bce {
  double pos_weight;
  explicit Bce(const Attrs& attrs) : pos_weight(FloatAttr(attrs, "pos_weight", 1)) {}
  double Loss(double x, double z) const {
    return WeightOf(z) * ((x > 0 ? x : 0) - x * z + std::log1p(std::exp(-std::fabs(x))));
  }
  double Slope(double x, double z) const { return WeightOf(z) * (1 / (1 + std::exp(-x)) - z); }
  double WeightOf(double z) const { return 1 + (pos_weight - 1) * z; }
};
struct Mse {
  explicit Mse(const Attrs&) {}
  double Loss(double x, double z) const { return (x - z) * (x - z); }
  double Slope(double x, double z) const { return 2 * (x - z); }
};
// With t = x for label 1 and -x for label 0, q = 1 / (1 + e^-t): a (1 - q)^gamma log(1 + e^-t).
struct Focal {
  double gamma, alpha;
  explicit Focal(const Attrs& attrs)
      : gamma(FloatAttr(attrs, "gamma", 2)), alpha(FloatAttr(attrs, "alpha", 0.25)) {}
  double Loss(double x, double z) const {
    const double t = z != 0 ? x : -x;
    return Balance(z) * std::pow(1 / (1 + std::exp(t)), gamma) * MinusLog(t);
  }
  double Slope(double x, double z) const {
    const double t = z != 0 ? x : -x;
    const double q = 1 / (1 + std::exp(-t)), rest = 1 / (1 + std::exp(t));
    const double slope = -std::pow(rest, gamma) * (gamma * q * MinusLog(t) + rest);
    return Balance(z) * (z != 0 ? slope : -slope);
  }
  double Balance(double z) const { return z != 0 ? alpha : 1 - alpha; }
  static double MinusLog(double t) {
    return (t < 0 ? -t : 0) + std::log1p(std::exp(-std::fabs(t)));
  }
};

// Predictions, labels, and weights (or nullptr), starting at input `first`.
template <class T>
struct Samples {
  std::span<const T> x;
  const T* label;
  const T* weight;
  Samples(const KernelContext& context, size_t first)
      : x(context.in(first).as<T>()),
        label(DataOf<T>(context.in(first + 1))),
        weight(context.inputs.size() > first + 2 ? DataOf<T>(context.in(first + 2)) : nullptr) {}
  double weight_of(size_t i) const { return weight == nullptr ? 1.0 : weight[i]; }
};

// Computed in float64, with partial sums of kPiece samples in order.
template <class LossFunction>
void Loss(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const Samples<T> samples(context, 0);
    const LossFunction function(context.node.attrs);
    const size_t pieces = (samples.x.size() + kPiece - 1) / kPiece;
    const std::span<double> parts = Scratch<double>(context, pieces);
    context.pool.ParallelFor(samples.x.size(), kPiece, [&](size_t begin, size_t end) {
      double sum = 0;
      for (size_t i = begin; i < end; ++i) {
        sum += samples.weight_of(i) * function.Loss(samples.x[i], samples.label[i]);
      }
      parts[begin / kPiece] = sum;
    });
    double total = 0;
    for (const double part : parts) total += part;
    context.out(0).as<T>()[0] = static_cast<T>(total / context.run.step_samples);
  });
}

template <class LossFunction>
void LossGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const Samples<T> samples(context, 1);
    const LossFunction function(context.node.attrs);
    const double share = static_cast<double>(context.in(0).as<T>()[0]) / context.run.step_samples;
    T* out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(samples.x.size(), kPiece, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const double slope = function.Slope(samples.x[i], samples.label[i]);
        out[i] = static_cast<T>(share * samples.weight_of(i) * slope);
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"bce_with_logits", Loss<Bce>},
    {"bce_with_logits_grad", LossGrad<Bce>},
    {"focal_with_logits", Loss<Focal>},
    {"focal_with_logits_grad", LossGrad<Focal>},
    {"mse", Loss<Mse>},
    {"mse_grad", LossGrad<Mse>},
};

}  // namespace

std::span<const NamedKernel> LossKernels() { return kKernels; }

}  // namespace dt
