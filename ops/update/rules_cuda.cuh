// The optimizers on the card, element by element: ops/update/update.h has their arithmetic.
#pragma once

#include "ops/cuda/util.cuh"

namespace dt {

// The fields of OptimizerSpec that dense updates and rows of tables read.
struct Optimizer {
  float lr, momentum, beta1, beta2, epsilon, ftrl_l1, ftrl_l2, ftrl_beta, weight_decay;
  explicit Optimizer(const CudaCall& call)
      : lr(Of(call, "lr")),
        momentum(Of(call, "momentum")),
        beta1(Of(call, "beta1")),
        beta2(Of(call, "beta2")),
        epsilon(Of(call, "epsilon")),
        ftrl_l1(Of(call, "ftrl_l1")),
        ftrl_l2(Of(call, "ftrl_l2")),
        ftrl_beta(Of(call, "ftrl_beta")),
        weight_decay(Of(call, "weight_decay")) {}
  static float Of(const CudaCall& call, const char* name) {
    return static_cast<float>(FloatAttr(call, name, 0));
  }
};

__device__ inline double Power(double base, uint64_t exponent) {
  double power = 1;
  for (; exponent != 0; exponent >>= 1, base *= base) {
    if (exponent & 1) power *= base;
  }
  return power;
}

// What depends on the step alone.
struct Rates {
  float lr, adam_rate, adam_root, keep;
};
__device__ inline Rates RatesFor(const Optimizer& spec, uint64_t step, float rate_scale) {
  const double lr = static_cast<double>(spec.lr) * rate_scale;
  const double correction1 = 1.0 - Power(spec.beta1, step + 1);
  const double root2 = sqrt(1.0 - Power(spec.beta2, step + 1));
  return {static_cast<float>(lr), static_cast<float>(lr / correction1),
          static_cast<float>(1.0 / root2), static_cast<float>(1.0 - lr * spec.weight_decay)};
}

// Everything a rule may change or read.
struct Element {
  float value, grad, first, second;
};
struct Sgd {
  static constexpr int kStates = 0;
  __device__ static void Apply(const Optimizer&, const Rates& rates, Element& e) {
    e.value -= rates.lr * e.grad;
  }
};
struct Momentum {
  static constexpr int kStates = 1;
  __device__ static void Apply(const Optimizer& spec, const Rates& rates, Element& e) {
    e.first = spec.momentum * e.first + e.grad;
    e.value -= rates.lr * e.first;
  }
};
struct Adagrad {
  static constexpr int kStates = 1;
  __device__ static void Apply(const Optimizer& spec, const Rates& rates, Element& e) {
    e.first += e.grad * e.grad;
    e.value -= rates.lr * e.grad / (sqrtf(e.first) + spec.epsilon);
  }
};
// AdamW where `keep` is not 1.
template <bool kDecays>
struct Adam {
  static constexpr int kStates = 2;
  __device__ static void Apply(const Optimizer& spec, const Rates& rates, Element& e) {
    e.first = spec.beta1 * e.first + (1.0f - spec.beta1) * e.grad;
    e.second = spec.beta2 * e.second + (1.0f - spec.beta2) * e.grad * e.grad;
    const float divisor = sqrtf(e.second) * rates.adam_root + spec.epsilon;
    const float keep = kDecays ? rates.keep : 1.0f;
    e.value = keep * e.value - rates.adam_rate * e.first / divisor;
  }
};
// McMahan et al., "Ad click prediction: a view from the trenches" (KDD 2013), algorithm 1: z and n.
struct Ftrl {
  static constexpr int kStates = 2;
  __device__ static void Apply(const Optimizer& spec, const Rates& rates, Element& e) {
    const float alpha = rates.lr, squares = e.second + e.grad * e.grad, root = sqrtf(squares);
    e.first += e.grad - (root - sqrtf(e.second)) / alpha * e.value;
    e.second = squares;
    const float shrunk = fabsf(e.first) - spec.ftrl_l1;
    const float size = shrunk / ((spec.ftrl_beta + root) / alpha + spec.ftrl_l2);
    e.value = shrunk <= 0.0f ? 0.0f : (e.first > 0.0f ? -size : size);
  }
};

}  // namespace dt
