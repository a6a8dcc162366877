#include "common/rows/missed_updates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "common/base/check.h"
#include "common/base/power.h"

namespace dt {
namespace {

constexpr double kNothingLeft = 1e-8;
constexpr uint64_t kTableMax = 1 << 16;  // The longest table; what is beyond is computed.

// correction(1 - β^t) for t = 1, 2, … until β^t is nothing; [0] is not used.
template <class Correction>
std::vector<float> CorrectionsOf(double beta, const Correction& correction) {
  std::vector<float> all = {0};
  double left = 1;
  do {
    left *= beta;
    all.push_back(static_cast<float>(correction(1 - left)));
  } while (left > kNothingLeft && all.size() < kTableMax);
  return all;
}
double Correction1(double gained) { return 1 / gained; }
double Correction2(double gained) { return 1 / std::sqrt(gained); }

// w / (1 + b + b²/2): near w · exp(-b), between 0 and w for every b ≥ 0, and without exp.
float Shrunk(float w, float b) { return w / (1.0f + b + 0.5f * b * b); }

// A value whose moments are 0 stays, also if epsilon is 0.
float EpsilonOf(const OptimizerSpec& spec) {
  return std::max(spec.epsilon, std::numeric_limits<float>::min());
}

bool IsAdam(const OptimizerSpec& spec) {
  return spec.kind == OptimizerKind::kAdam || spec.kind == OptimizerKind::kAdamW;
}

// The linear map of many steps of SGD with momentum: (value, velocity) → (value, velocity).
struct Map {
  double ww = 1, wv = 0, vw = 0, vv = 1;
};
Map operator*(const Map& a, const Map& b) {
  return {a.ww * b.ww + a.wv * b.vw, a.ww * b.wv + a.wv * b.vv, a.vw * b.ww + a.vv * b.vw,
          a.vw * b.wv + a.vv * b.vv};
}
Map Power(Map map, uint64_t exponent) {
  Map power;
  for (; exponent != 0; exponent >>= 1, map = map * map) {
    if (exponent & 1) power = power * map;
  }
  return power;
}

}  // namespace

MissedUpdates::MissedUpdates(const OptimizerSpec& spec) : spec_(spec) {
  DT_CHECK(spec.scope == UpdateScope::kDense && InfoOf(spec.kind).has_dense_scope);
  if (!IsAdam(spec_)) return;
  corrections1_ = CorrectionsOf(spec_.beta1, Correction1);
  corrections2_ = CorrectionsOf(spec_.beta2, Correction2);
  spec_.l2 == 0 ? MakeStrides() : MakeStridesWithL2();
}

// ------------------------------------------------------------ strides of Adam

// The weights of a stride's steps: the first moment is β1^k of what it was, and stands over a root
// that is β2^(k/2) of what it was.
void MissedUpdates::MakeStrides() {
  const double beta1 = spec_.beta1, beta2 = spec_.beta2, ratio = beta1 / std::sqrt(beta2);
  double weights = 0, centres = 0, left = 1;
  Stride stride;
  strides_.push_back(stride);
  while (strides_.size() < kTableMax) {
    const auto k = static_cast<double>(strides_.size());
    stride.keep1 *= beta1;
    stride.keep2 *= beta2;
    stride.first_sum += stride.keep1;
    left *= ratio;
    weights += left;
    centres += k * left;
    stride.second_mean = weights > 0 ? stride.first_sum / weights : 1;
    stride.second_mean *= stride.second_mean;
    stride.centre = weights > 0 ? centres / weights : 1;
    strides_.push_back(stride);
    if (left < kNothingLeft) return;
  }
}

// With l2, the middle of a stride stands for all of its steps.
void MissedUpdates::MakeStridesWithL2() {
  constexpr uint64_t kUsual = 1024;
  for (uint64_t steps = 0; steps < kUsual; ++steps) strides_.push_back(StrideWithL2(steps));
}

MissedUpdates::Stride MissedUpdates::StrideWithL2(uint64_t steps) const {
  const double beta1 = spec_.beta1;
  Stride stride;
  stride.keep1 = dt::Power(beta1, steps);
  stride.keep2 = dt::Power(spec_.beta2, steps);
  stride.first_sum = beta1 * (1 - stride.keep1) / (1 - beta1);
  stride.second_mean = std::sqrt(stride.keep2 * static_cast<double>(spec_.beta2));
  stride.centre = static_cast<double>(steps + 1) / 2;
  return stride;
}

// At first the bias corrections change fast, then the first moment; later the second moment.
uint64_t MissedUpdates::StrideAfter(uint64_t done, uint64_t t) const {
  const uint64_t corrected = std::max<uint64_t>(1, t / 3);
  if (spec_.l2 == 0) return std::min<uint64_t>(corrected, strides_.size() - 1);
  const auto decayed = static_cast<uint64_t>(0.25 / (1 - static_cast<double>(spec_.beta2)));
  const uint64_t slow = std::max({decayed, done / 4, uint64_t{1}});
  return std::min({corrected, slow, std::max<uint64_t>(2, done / 2)});
}

float MissedUpdates::FirstCorrection(uint64_t t) const {
  if (t < corrections1_.size()) return corrections1_[t];
  return static_cast<float>(Correction1(1 - dt::Power(spec_.beta1, t)));
}

float MissedUpdates::SecondCorrection(uint64_t t) const {
  if (t < corrections2_.size()) return corrections2_[t];
  return static_cast<float>(Correction2(1 - dt::Power(spec_.beta2, t)));
}

// ------------------------------------------------------------ optimizers

void MissedUpdates::AdamValues(uint64_t count, Step first, const Moments& row,
                               std::span<float> values) const {
  const double decay = spec_.kind == OptimizerKind::kAdamW ? spec_.weight_decay : 0;
  const double keep = 1 - static_cast<double>(row.rate) * decay;
  const float epsilon = EpsilonOf(spec_);
  float* __restrict value = values.data();
  const float* __restrict m = row.first.data();
  const float* __restrict v = row.second.data();
  double left1 = 1, left2 = 1;
  for (uint64_t done = 0; done < count;) {
    const uint64_t t = first + done;
    const uint64_t steps = std::min(StrideAfter(done, t), count - done);
    const Stride& stride = strides_[steps];
    const uint64_t centre = t + static_cast<uint64_t>(stride.centre + 0.5);
    const auto rate = static_cast<float>(row.rate * left1 * stride.first_sum *
                                         static_cast<double>(FirstCorrection(centre)));
    const auto root = static_cast<float>(std::sqrt(left2 * stride.second_mean) *
                                         static_cast<double>(SecondCorrection(centre)));
    left1 *= stride.keep1;
    left2 *= stride.keep2;
    done += steps;
    const bool moves = left1 * left1 > kNothingLeft * kNothingLeft * left2;
    const uint64_t kept_steps = moves ? steps : steps + count - done;
    const auto kept = decay == 0 ? 1.0f : static_cast<float>(dt::Power(keep, kept_steps));
    for (size_t i = 0; i < values.size(); ++i) {
      value[i] = kept * (value[i] - rate * m[i] / (std::sqrt(v[i]) * root + epsilon));
    }
    if (!moves) return;
  }
}

void MissedUpdates::AdamWithL2(uint64_t count, Step first, const Row& row) const {
  const double decay = spec_.kind == OptimizerKind::kAdamW ? spec_.weight_decay : 0;
  const double keep = 1 - static_cast<double>(row.rate) * decay;
  const float l2 = spec_.l2;
  const float epsilon = EpsilonOf(spec_);
  float* __restrict value = row.value.data();
  float* __restrict m = row.first.data();
  float* __restrict v = row.second.data();
  const size_t dim = row.value.size();
  for (uint64_t done = 0; done < count;) {
    const uint64_t t = first + done;
    const uint64_t steps = std::min(StrideAfter(done, t), count - done);
    const Stride stride = steps < strides_.size() ? strides_[steps] : StrideWithL2(steps);
    const uint64_t centre = t + static_cast<uint64_t>(stride.centre + 0.5);
    const double corrected = row.rate * static_cast<double>(FirstCorrection(centre));
    const auto moment_rate = static_cast<float>(corrected * stride.first_sum);
    const auto l2_rate =
        static_cast<float>(corrected * (static_cast<double>(steps) - stride.first_sum) * l2);
    const float root = SecondCorrection(centre);
    const auto keep1 = static_cast<float>(stride.keep1), keep2 = static_cast<float>(stride.keep2);
    const auto mean2 = static_cast<float>(stride.second_mean);
    const auto kept = static_cast<float>(dt::Power(keep, steps));
    for (size_t i = 0; i < dim; ++i) {
      const float old = value[i], gradient = l2 * old;
      const float second = mean2 * v[i] + (1.0f - mean2) * gradient * gradient;
      const float under = std::sqrt(second) * root + epsilon;
      const float moved = old - moment_rate * m[i] / under;
      value[i] = kept * Shrunk(moved, l2_rate / under);
      const float mean = 0.5f * l2 * (old + value[i]);
      m[i] = keep1 * m[i] + (1.0f - keep1) * mean;
      v[i] = keep2 * v[i] + (1.0f - keep2) * mean * mean;
    }
    done += steps;
  }
}

void MissedUpdates::Linear(uint64_t count, const Row& row) const {
  const double rate = row.rate, l2 = spec_.l2;
  if (spec_.kind == OptimizerKind::kSgd) {
    const auto kept = static_cast<float>(dt::Power(1 - rate * l2, count));
    for (float& value : row.value) value *= kept;
    return;
  }
  const double momentum = spec_.momentum;
  const Map map = Power(Map{1 - rate * l2, -rate * momentum, l2, momentum}, count);
  const auto ww = static_cast<float>(map.ww), wv = static_cast<float>(map.wv);
  const auto vw = static_cast<float>(map.vw), vv = static_cast<float>(map.vv);
  for (size_t i = 0; i < row.value.size(); ++i) {
    const float value = row.value[i], velocity = row.first[i];
    row.value[i] = ww * value + wv * velocity;
    row.first[i] = vw * value + vv * velocity;
  }
}

// The sum of squares grows by that of l2's gradient.
void MissedUpdates::Adagrad(uint64_t count, const Row& row) const {
  const float l2 = spec_.l2;
  const float epsilon = EpsilonOf(spec_);
  for (uint64_t done = 0; done < count;) {
    const uint64_t steps = std::min(std::max<uint64_t>(2, done / 4), count - done);
    const auto n = static_cast<float>(steps);
    for (size_t i = 0; i < row.value.size(); ++i) {
      const float old = row.value[i], gradient = l2 * old;
      const float sum = row.first[i] + 0.5f * (n + 1.0f) * gradient * gradient;
      row.value[i] = Shrunk(old, row.rate * n * l2 / (std::sqrt(sum) + epsilon));
      const float mean = 0.5f * l2 * (old + row.value[i]);
      row.first[i] += n * mean * mean;
    }
    done += steps;
  }
}

void MissedUpdates::RowwiseAdagrad(uint64_t count, const Row& row) const {
  const float l2 = spec_.l2;
  const float epsilon = EpsilonOf(spec_);
  const auto dim = static_cast<double>(row.value.size());
  float& sum = row.first[0];
  for (uint64_t done = 0; done < count;) {
    const uint64_t steps = std::min(std::max<uint64_t>(2, done / 4), count - done);
    const auto n = static_cast<float>(steps);
    double squares = 0;
    for (const float w : row.value) squares += static_cast<double>(w) * w;
    const auto gradient = static_cast<float>(squares / dim) * l2 * l2;
    const float under = std::sqrt(sum + 0.5f * (n + 1.0f) * gradient) + epsilon;
    const float kept = Shrunk(1.0f, row.rate * n * l2 / under);
    for (float& w : row.value) w *= kept;
    sum += n * gradient * 0.25f * (1.0f + kept) * (1.0f + kept);
    done += steps;
  }
}

// ------------------------------------------------------------ rows

void MissedUpdates::Apply(Steps steps, std::span<float> value, std::span<float> state) const {
  if (steps.now <= steps.first) return;
  const uint64_t count = steps.now - steps.first;
  const size_t dim = value.size();
  Row row{.value = value, .first = state.first(state.size() - 1), .rate = state.back()};
  switch (spec_.kind) {
    case OptimizerKind::kSgd:
    case OptimizerKind::kMomentum:
      return Linear(count, row);
    case OptimizerKind::kAdagrad:
      return spec_.l2 == 0 ? void() : Adagrad(count, row);
    case OptimizerKind::kRowwiseAdagrad:
      return spec_.l2 == 0 ? void() : RowwiseAdagrad(count, row);
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW: {
      row.second = row.first.subspan(dim);
      if (spec_.l2 != 0) return AdamWithL2(count, steps.first, row);
      AdamValues(count, steps.first, {row.first, row.second, row.rate}, value);
      const bool usual = count < strides_.size();
      const auto keep1 =
          static_cast<float>(usual ? strides_[count].keep1 : dt::Power(spec_.beta1, count));
      const auto keep2 =
          static_cast<float>(usual ? strides_[count].keep2 : dt::Power(spec_.beta2, count));
      for (size_t i = 0; i < dim; ++i) {
        row.first[i] *= keep1;
        row.second[i] *= keep2;
      }
      return;
    }
    case OptimizerKind::kLazyAdam:
    case OptimizerKind::kFtrl:
      break;  // Refused by the constructor.
  }
  DT_UNREACHABLE();
}

void MissedUpdates::ApplyToValues(Steps steps, std::span<float> value,
                                  std::span<const float> state) const {
  if (steps.now <= steps.first) return;
  if (IsAdam(spec_) && spec_.l2 == 0) {
    const size_t dim = value.size();
    const Moments row{state.first(dim), state.subspan(dim, dim), state.back()};
    return AdamValues(steps.now - steps.first, steps.first, row, value);
  }
  std::array<float, 2 * kRowDimMax + 1> copy;  // Not initialised: most rows need little of it.
  const std::span<float> own(copy.data(), state.size());
  std::ranges::copy(state, own.begin());
  Apply(steps, value, own);
}

}  // namespace dt
