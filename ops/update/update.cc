// Where the rules come from: momentum is PyTorch's SGD with momentum; row-wise Adagrad is Adagrad
// with one accumulator per row; Adam, AdamW and LazyAdam are PyTorch's Adam, AdamW and SparseAdam;
// FTRL-proximal is algorithm 1 of McMahan et al., KDD 2013.
#include "ops/update/update.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "common/base/check.h"
#include "common/base/power.h"

namespace dt {
namespace {

UpdateRates RatesFor(const OptimizerSpec& spec, const UpdateInfo& info, bool sparse) {
  UpdateRates rates;
  const double lr = static_cast<double>(spec.lr) * info.lr_scale;
  rates.lr = static_cast<float>(lr);
  const uint64_t t = info.step + 1;
  const double correction1 = 1.0 - Power(spec.beta1, t);
  const double root2 = std::sqrt(1.0 - Power(spec.beta2, t));
  if (sparse && spec.kind == OptimizerKind::kLazyAdam) {
    // SparseAdam corrects the rate, so epsilon is added to the uncorrected root.
    rates.adam_rate = static_cast<float>(lr * root2 / correction1);
  } else {
    rates.adam_rate = static_cast<float>(lr / correction1);
    rates.adam_root = static_cast<float>(1.0 / root2);
  }
  if (spec.kind == OptimizerKind::kAdamW) rates.keep = 1.0 - lr * spec.weight_decay;
  return rates;
}

void Sgd(float lr, size_t n, float* __restrict value, const float* __restrict grad) {
  for (size_t i = 0; i < n; ++i) value[i] -= lr * grad[i];
}

void Momentum(float lr, float momentum, std::span<float> values, float* __restrict velocity,
              const float* __restrict grad) {
  float* __restrict value = values.data();
  for (size_t i = 0; i < values.size(); ++i) {
    velocity[i] = momentum * velocity[i] + grad[i];
    value[i] -= lr * velocity[i];
  }
}

void Adagrad(float lr, float epsilon, std::span<float> values, float* __restrict sum,
             const float* __restrict grad) {
  float* __restrict value = values.data();
  for (size_t i = 0; i < values.size(); ++i) {
    sum[i] += grad[i] * grad[i];
    value[i] -= lr * grad[i] / (std::sqrt(sum[i]) + epsilon);
  }
}

void RowwiseAdagrad(float lr, float epsilon, std::span<float> value, float& sum,
                    std::span<const float> grad) {
  double squares = 0;
  for (const float g : grad) squares += static_cast<double>(g) * g;
  sum += static_cast<float>(squares / static_cast<double>(grad.size()));
  const float rate = lr / (std::sqrt(sum) + epsilon);
  for (size_t i = 0; i < value.size(); ++i) value[i] -= rate * grad[i];
}

struct AdamArrays {
  std::span<float> value;
  float* first;   // The first moment.
  float* second;  // The second moment.
  const float* grad;
};
// `keep`: AdamW's factor of the value.
void Adam(const OptimizerSpec& spec, const UpdateRates& rates, float keep,
          const AdamArrays& arrays) {
  float* __restrict value = arrays.value.data();
  float* __restrict first = arrays.first;
  float* __restrict second = arrays.second;
  const float* __restrict grad = arrays.grad;
  const float beta1 = spec.beta1, beta2 = spec.beta2, epsilon = spec.epsilon;
  const float gain1 = 1.0f - beta1, gain2 = 1.0f - beta2;
  const float rate = rates.adam_rate, root = rates.adam_root;
  for (size_t i = 0; i < arrays.value.size(); ++i) {
    first[i] = beta1 * first[i] + gain1 * grad[i];
    second[i] = beta2 * second[i] + gain2 * grad[i] * grad[i];
    value[i] = keep * value[i] - rate * first[i] / (std::sqrt(second[i]) * root + epsilon);
  }
}

// McMahan et al., "Ad click prediction: a view from the trenches" (KDD 2013), algorithm 1. `z` and
// `n` are named as there; alpha is the learning rate.
struct FtrlArrays {
  std::span<float> value;
  float* z;
  float* n;
  const float* grad;
};
void Ftrl(const OptimizerSpec& spec, float alpha, const FtrlArrays& arrays) {
  float* __restrict value = arrays.value.data();
  float* __restrict z = arrays.z;
  float* __restrict n = arrays.n;
  const float* __restrict grad = arrays.grad;
  const float l1 = spec.ftrl_l1, l2 = spec.ftrl_l2, beta = spec.ftrl_beta;
  for (size_t i = 0; i < arrays.value.size(); ++i) {
    const float squares = n[i] + grad[i] * grad[i];
    const float root = std::sqrt(squares);
    z[i] += grad[i] - (root - std::sqrt(n[i])) / alpha * value[i];
    n[i] = squares;
    const float shrunk = std::fabs(z[i]) - l1;
    const float size = shrunk / ((beta + root) / alpha + l2);
    value[i] = shrunk <= 0.0f ? 0.0f : (z[i] > 0.0f ? -size : size);
  }
}

void Decay(double beta, uint64_t times, std::span<float> moment) {
  if (times == 0) return;
  const auto factor = static_cast<float>(Power(beta, times));
  for (float& m : moment) m *= factor;
}

void AddL2(float factor, std::span<const float> value, std::span<float> grad) {
  for (size_t i = 0; i < grad.size(); ++i) grad[i] += factor * value[i];
}

void ClipNorm(float limit, std::span<float> grad) {
  double squares = 0;
  for (const float g : grad) squares += static_cast<double>(g) * g;
  const double norm = std::sqrt(squares);
  if (norm <= limit) return;
  const auto factor = static_cast<float>(limit / norm);
  for (float& g : grad) g *= factor;
}

// The gradient with l2 and clipping applied, written to `scratch`; `grad` itself if there are none.
std::span<const float> RowGradient(const OptimizerSpec& spec, uint64_t steps_since_update,
                                   std::span<const float> value, std::span<const float> grad,
                                   std::span<float> scratch) {
  if (spec.l2 == 0.0f && spec.clip_row_norm <= 0.0f) return grad;
  const std::span<float> own = scratch.first(grad.size());
  std::ranges::copy(grad, own.begin());
  if (spec.l2 != 0.0f) {
    const uint64_t times = spec.l2_scope == L2Scope::kGap ? steps_since_update : 1;
    AddL2(static_cast<float>(spec.l2 * static_cast<double>(times)), value, own);
  }
  if (spec.clip_row_norm > 0.0f) ClipNorm(spec.clip_row_norm, own);
  return own;
}

}  // namespace

uint32_t DenseStates(const OptimizerSpec& spec) { return InfoOf(spec.kind).value_states; }

float InitialState(const OptimizerSpec& spec) {
  const auto number = InfoOf(spec.kind).initial_state;
  return number == nullptr ? 0.0f : spec.*number;
}

uint32_t StateFloats(const OptimizerSpec& spec, uint32_t dim) {
  const OptimizerInfo& optimizer = InfoOf(spec.kind);
  const uint32_t rate = spec.scope == UpdateScope::kDense ? 1 : 0;
  return optimizer.value_states * dim + optimizer.row_states + rate;
}

void InitState(const OptimizerSpec& spec, std::span<float> state) {
  std::ranges::fill(state, InitialState(spec));
  if (spec.scope == UpdateScope::kDense) state.back() = spec.lr;
}

RowUpdate::RowUpdate(const OptimizerSpec& spec, const UpdateInfo& info)
    : spec_(spec), rates_(RatesFor(spec, info, true)) {}

void RowUpdate::Apply(uint64_t steps_since_update, std::span<float> value, std::span<float> state,
                      std::span<const float> given) const {
  const size_t dim = value.size();
  DT_DCHECK(steps_since_update >= 1 && given.size() == dim && dim <= kRowDimMax);
  DT_DCHECK(state.size() == StateFloats(spec_, static_cast<uint32_t>(dim)));
  if (spec_.scope == UpdateScope::kDense) {
    DT_DCHECK(steps_since_update == 1);
    state.back() = rates_.lr;
    state = state.first(state.size() - 1);
  }
  std::array<float, kRowDimMax> scratch;  // Not initialised, because most rows do not need it.
  const std::span<const float> grad = RowGradient(spec_, steps_since_update, value, given, scratch);
  float* const second = state.data() + (state.size() > dim ? dim : 0);
  switch (spec_.kind) {
    case OptimizerKind::kSgd:
      return Sgd(rates_.lr, dim, value.data(), grad.data());
    case OptimizerKind::kMomentum:
      return Momentum(rates_.lr, spec_.momentum, value, state.data(), grad.data());
    case OptimizerKind::kAdagrad:
      return Adagrad(rates_.lr, spec_.epsilon, value, state.data(), grad.data());
    case OptimizerKind::kRowwiseAdagrad:
      return RowwiseAdagrad(rates_.lr, spec_.epsilon, value, state[0], grad);
    case OptimizerKind::kLazyAdam:
      return Adam(spec_, rates_, 1.0f, {value, state.data(), second, grad.data()});
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW: {
      Decay(spec_.beta1, steps_since_update - 1, state.first(dim));
      Decay(spec_.beta2, steps_since_update - 1, state.subspan(dim));
      const uint64_t decays = spec_.l2_scope == L2Scope::kGap ? steps_since_update : 1;
      const auto keep = static_cast<float>(Power(rates_.keep, decays));
      return Adam(spec_, rates_, keep, {value, state.data(), second, grad.data()});
    }
    case OptimizerKind::kFtrl:
      return Ftrl(spec_, rates_.lr, {value, state.data(), second, grad.data()});
  }
  DT_UNREACHABLE();
}

void UpdateDense(const OptimizerSpec& spec, const UpdateInfo& info, std::span<float> value,
                 std::span<float* const> states, std::span<const float> grad) {
  DT_CHECK(states.size() == DenseStates(spec) && grad.size() == value.size());
  const UpdateRates rates = RatesFor(spec, info, false);
  switch (spec.kind) {
    case OptimizerKind::kSgd:
      return Sgd(rates.lr, value.size(), value.data(), grad.data());
    case OptimizerKind::kMomentum:
      return Momentum(rates.lr, spec.momentum, value, states[0], grad.data());
    case OptimizerKind::kAdagrad:
      return Adagrad(rates.lr, spec.epsilon, value, states[0], grad.data());
    case OptimizerKind::kAdam:
    case OptimizerKind::kLazyAdam:
    case OptimizerKind::kAdamW: {
      const auto keep = static_cast<float>(rates.keep);
      return Adam(spec, rates, keep, {value, states[0], states[1], grad.data()});
    }
    case OptimizerKind::kFtrl:
      return Ftrl(spec, rates.lr, {value, states[0], states[1], grad.data()});
    case OptimizerKind::kRowwiseAdagrad:
      break;  // Refused for dense parameters when the graph is built.
  }
  DT_UNREACHABLE();
}

}  // namespace dt
