#include <cmath>

#include "test/ops/cases/case_maker.h"

namespace dt::test {
namespace {

// Σ weight_i f(i) over the samples of the slice, divided by the number of samples of the step.
template <class F>
Numbers Mean(const OpCase& c, const Numbers* weights, const F& f) {
  double sum = 0;
  for (size_t i = 0; i < static_cast<size_t>(c.sizes.at(kBatch)); ++i) {
    sum += (weights == nullptr ? 1 : (*weights)[i]) * f(i);
  }
  return {sum / c.run.step_samples};
}

const Numbers* Weights(const OpCase& c) {
  return c.inputs.size() == 3 ? &c.inputs[2].values : nullptr;
}

// The value of a double attribute.
double Attr(const OpCase& c, const char* name, double fallback) {
  const auto found = c.attrs.find(name);
  return found == c.attrs.end() ? fallback : std::get<double>(found->second);
}

std::vector<Numbers> Bce(const OpCase& c) {
  return {Mean(c, Weights(c), [&](size_t i) {
    const double label = c.inputs[1].values[i], p = 1 / (1 + std::exp(-c.inputs[0].values[i]));
    return -label * Attr(c, "pos_weight", 1) * std::log(p) - (1 - label) * std::log(1 - p);
  })};
}

std::vector<Numbers> Focal(const OpCase& c) {
  return {Mean(c, Weights(c), [&](size_t i) {
    const bool positive = c.inputs[1].values[i] != 0;
    const double p = 1 / (1 + std::exp(-c.inputs[0].values[i])), q = positive ? p : 1 - p;
    const double alpha = Attr(c, "alpha", 0.25);
    return -(positive ? alpha : 1 - alpha) * std::pow(1 - q, Attr(c, "gamma", 2)) * std::log(q);
  })};
}

// The scores of sample i: the positive item's, and the negative ones'.
std::vector<Numbers> Negatives(const OpCase& c, double (*f)(double, const Numbers&)) {
  const Tensor x = In(c, 0);
  const Numbers* const weights = c.inputs.size() == 2 ? &c.inputs[1].values : nullptr;
  return {Mean(c, weights, [&](size_t i) {
    Numbers negatives;
    for (int64_t j = 1; j < x.dim(1); ++j) negatives.push_back(x.at({static_cast<int64_t>(i), j}));
    return f(x.at({static_cast<int64_t>(i), 0}), negatives);
  })};
}
double BprOf(double positive, const Numbers& negatives) {
  double sum = 0;
  for (const double x : negatives) sum -= std::log(1 / (1 + std::exp(x - positive)));
  return sum / static_cast<double>(negatives.size());
}
double SampledSoftmaxOf(double positive, const Numbers& negatives) {
  double sum = std::exp(positive);
  for (const double x : negatives) sum += std::exp(x);
  return -std::log(std::exp(positive) / sum);
}

double Squared(double x, double label) { return (x - label) * (x - label); }

std::vector<Numbers> OfColumns(const OpCase& c, double (*f)(double, double)) {
  return {Mean(c, Weights(c),
               [&](size_t i) { return f(c.inputs[0].values[i], c.inputs[1].values[i]); })};
}

std::vector<Numbers> CrossEntropy(const OpCase& c) {
  const Tensor logits = In(c, 0), label = In(c, 1);
  return {Mean(c, Weights(c), [&](size_t i) {
    const auto row = static_cast<int64_t>(i);
    const auto own = static_cast<int64_t>(label.at({row, 0}));
    double sum = 0;
    for (int64_t k = 0; k < logits.dim(1); ++k) {
      sum += std::exp(logits.at({row, k}) - logits.at({row, own}));
    }
    return std::log(sum);
  })};
}

std::vector<Numbers> Pick(const OpCase& c) {
  const Tensor x = In(c, 0), position = In(c, 1);
  return {ForEach(position.shape, [&](Index at) {
    at.back() = static_cast<int64_t>(position.at(at));
    return x.at(at);
  })};
}

std::vector<Numbers> InBatch(const OpCase& c) {
  const Tensor user = In(c, 0), item = In(c, 1);
  size_t next = 2;
  const auto input = [&](bool there) { return there ? &c.inputs[next++].values : nullptr; };
  const Numbers* const label = input(Flag(c, "label"));
  const Numbers* const weight = input(Flag(c, "weight"));
  const Numbers* const log_q = input(Flag(c, "log_q"));
  const Numbers* const key = input(Flag(c, "key"));
  const auto n = user.dim(0);
  const auto at = [](const Numbers* of, int64_t i, double fallback) {
    return of == nullptr ? fallback : (*of)[static_cast<size_t>(i)];
  };
  const auto score = [&](int64_t i, int64_t j) {
    double dot = 0;
    for (int64_t d = 0; d < user.dim(1); ++d) dot += user.at({i, d}) * item.at({j, d});
    return dot / 0.5;
  };
  Numbers scored;
  Numbers weights;
  for (int64_t i = 0; i < n; ++i) {
    const double own = score(i, i) - at(log_q, i, 0);
    double sum = 0, first = 1;
    for (int64_t j = 0; j < n; ++j) {
      const bool same =
          at(key, 2 * i, 0) == at(key, 2 * j, 1) && at(key, 2 * i + 1, 0) == at(key, 2 * j + 1, 1);
      if (i != j && same) continue;
      const double x = score(i, j) - at(log_q, j, 0);
      sum += std::exp(x - own);
      if (i != j && x >= own) first = 0;
    }
    scored.insert(scored.end(), {score(i, i), std::log(sum), first});
    weights.push_back(at(label, i, 1) * at(weight, i, 1));
  }
  return {Mean(c, &weights, [&](size_t i) { return scored[3 * i + 1]; }), scored};
}

}  // namespace

std::vector<Numbers> LossDefinition(const OpCase& c) {
  if (c.op == "bce_with_logits") return Bce(c);
  if (c.op == "focal_with_logits") return Focal(c);
  if (c.op == "bpr") return Negatives(c, BprOf);
  if (c.op == "sampled_softmax") return Negatives(c, SampledSoftmaxOf);
  if (c.op == "mse") return OfColumns(c, Squared);
  if (c.op == "softmax_cross_entropy") return CrossEntropy(c);
  if (c.op == "pick") return Pick(c);
  if (c.op == "sample_mean") {
    return {Mean(c, nullptr, [&](size_t i) { return c.inputs[0].values[i]; })};
  }
  if (c.op == "in_batch_softmax") return InBatch(c);
  return {};
}

}  // namespace dt::test
