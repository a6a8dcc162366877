// The optimizers on the card, element by element, with the arithmetic of ops/update/update.h.
#pragma once

#include "common/specs/optimizer.h"
#include "ops/cuda/util.cuh"

namespace dt {

// The numbers of the optimizer; settings for rows have their defaults. `kind` is not set, because a
// call's rule is found by its name (RunNamedRule).
inline OptimizerSpec OptimizerOf(const CudaCall& call) {
  OptimizerSpec spec;
  for (const OptimizerNumber& number : kOptimizerNumbers) {
    spec.*number.value = static_cast<float>(FloatAttr(call, number.name.data(), 0));
  }
  return spec;
}

__device__ inline double Power(double base, uint64_t exponent) {
  double power = 1;
  for (; exponent != 0; exponent >>= 1, base *= base) {
    if (exponent & 1) power *= base;
  }
  return power;
}

// Values that depend on the step alone.
struct Rates {
  float lr, adam_rate, adam_root, keep;
};
__device__ inline Rates RatesFor(const OptimizerSpec& spec, uint64_t step, float lr_scale) {
  const double lr = static_cast<double>(spec.lr) * lr_scale;
  const double correction1 = 1.0 - Power(spec.beta1, step + 1);
  const double root2 = sqrt(1.0 - Power(spec.beta2, step + 1));
  return {static_cast<float>(lr), static_cast<float>(lr / correction1),
          static_cast<float>(1.0 / root2), static_cast<float>(1.0 - lr * spec.weight_decay)};
}

// The numbers that a rule reads and changes.
struct Element {
  float value, grad, first, second;
};

// Defaults of the rules.
struct Rule {
  // For rows: state decays by the steps since the last update.
  static constexpr bool kFades = false;
  static constexpr bool kLazy = false;  // For rows: uses SparseAdam's bias correction.
  // One float of state for each row; not for dense parameters.
  static constexpr bool kRowwise = false;
};
struct Sgd : Rule {
  static constexpr const char* kName = "sgd";
  static constexpr int kStates = 0;
  __device__ static void Apply(const OptimizerSpec&, const Rates& rates, Element& e) {
    e.value -= rates.lr * e.grad;
  }
};
struct Momentum : Rule {
  static constexpr const char* kName = "momentum";
  static constexpr int kStates = 1;
  __device__ static void Apply(const OptimizerSpec& spec, const Rates& rates, Element& e) {
    e.first = spec.momentum * e.first + e.grad;
    e.value -= rates.lr * e.first;
  }
};
struct Adagrad : Rule {
  static constexpr const char* kName = "adagrad";
  static constexpr int kStates = 1;
  __device__ static void Apply(const OptimizerSpec& spec, const Rates& rates, Element& e) {
    e.first += e.grad * e.grad;
    e.value -= rates.lr * e.grad / (sqrtf(e.first) + spec.epsilon);
  }
};
struct RowwiseAdagrad : Rule {
  static constexpr const char* kName = "rowwise_adagrad";
  static constexpr int kStates = 0;  // State for each value.
  static constexpr bool kRowwise = true;
};
// With kDecays it is AdamW, whose value decays.
template <bool kDecays>
struct AdamRule : Rule {
  static constexpr int kStates = 2;
  __device__ static void Apply(const OptimizerSpec& spec, const Rates& rates, Element& e) {
    e.first = spec.beta1 * e.first + (1.0f - spec.beta1) * e.grad;
    e.second = spec.beta2 * e.second + (1.0f - spec.beta2) * e.grad * e.grad;
    const float divisor = sqrtf(e.second) * rates.adam_root + spec.epsilon;
    const float keep = kDecays ? rates.keep : 1.0f;
    e.value = keep * e.value - rates.adam_rate * e.first / divisor;
  }
};
struct Adam : AdamRule<false> {
  static constexpr const char* kName = "adam";
  static constexpr bool kFades = true;
};
struct LazyAdam : AdamRule<false> {
  static constexpr const char* kName = "lazy_adam";
  static constexpr bool kLazy = true;
};
struct AdamW : AdamRule<true> {
  static constexpr const char* kName = "adamw";
  static constexpr bool kFades = true;
};
// McMahan et al., "Ad click prediction: a view from the trenches" (KDD 2013), algorithm 1. State: z
// and n.
struct Ftrl : Rule {
  static constexpr const char* kName = "ftrl";
  static constexpr int kStates = 2;
  __device__ static void Apply(const OptimizerSpec& spec, const Rates& rates, Element& e) {
    const float alpha = rates.lr, squares = e.second + e.grad * e.grad, root = sqrtf(squares);
    e.first += e.grad - (root - sqrtf(e.second)) / alpha * e.value;
    e.second = squares;
    const float shrunk = fabsf(e.first) - spec.ftrl_l1;
    const float size = shrunk / ((spec.ftrl_beta + root) / alpha + spec.ftrl_l2);
    e.value = shrunk <= 0.0f ? 0.0f : (e.first > 0.0f ? -size : size);
  }
};

template <class... Rules>
struct RuleList {};
using AllRules = RuleList<Sgd, Momentum, Adagrad, RowwiseAdagrad, Adam, LazyAdam, AdamW, Ftrl>;

// Calls run(Rule{}) with the rule that the call names.
template <class Run, class... Rules>
CudaError RunNamedRule(const CudaCall& call, const Run& run, RuleList<Rules...>) {
  const char* const name = TextAttr(call, "optimizer", "");
  CudaError error = "no such optimizer";
  const auto try_rule = [&](auto rule) {
    const bool named = std::strcmp(decltype(rule)::kName, name) == 0;
    if (named) error = run(rule);
    return named;
  };
  static_cast<void>((try_rule(Rules{}) || ...));
  return error;
}

}  // namespace dt
