#include "worker/data/planted_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "common/base/philox.h"

namespace dt::worker {
namespace {

// Streams of random numbers under the seed.
constexpr uint64_t kWeightPurpose = 0x67656e77656967;
constexpr uint64_t kFactorPurpose = 0x67656e66616374;
constexpr uint64_t kTextPurpose = 0x67656e74657874;
constexpr uint64_t kRowPurpose = 0x67656e726f77;

constexpr double kPower = 1.2;
constexpr size_t kLargeField = 50;  // The vocabulary option scales columns of at least this size.
constexpr std::array<size_t, PlantedModel::kFields> kSizes = {
    40, 8, 60, 80, 6, 5, 70, 8, 3, 60, 90, 200, 50, 7, 50, 80, 6, 70, 16, 4, 50, 5, 6, 60, 8, 30};
// Columns without a weight are noise, as most real logs have.
constexpr std::array<size_t, 2> kNoise = {2, 17};
constexpr std::array<size_t, 6> kWithEmptyCells = {1, 6, 11, 18, 21, 25};
constexpr uint32_t kEmptyId = 1;
// Columns that interact, each with each, as in a factorisation machine. None has empty cells.
constexpr std::array<size_t, 6> kInteracting = {4, 5, 13, 16, 19, 22};

// The logit's variance by part; together they put the best AUC near 0.80.
constexpr double kFieldVariance = 1.4 / (PlantedModel::kFields - kNoise.size());
constexpr double kInteractionVariance = 0.3;
constexpr double kIntercept = -1.45;

// Mean and deviation of log(1 + count), the share of missing counts, and the effect on the logit. A
// missing count counts as 0, as the reader gives it.
struct CountShape {
  double mean, deviation, missing, slope, curve;
};
constexpr std::array<CountShape, PlantedModel::kCounts> kCountShapes = {{
    {0.8, 0.9, 0.40, 0.20, 0.02},
    {1.6, 1.3, 0.00, 0.00, 0.00},
    {1.9, 1.1, 0.20, -0.14, 0.00},
    {1.7, 0.8, 0.20, 0.00, 0.00},
    {7.0, 1.8, 0.03, 0.00, 0.00},
    {3.2, 1.4, 0.20, -0.10, 0.01},
    {1.8, 1.1, 0.05, 0.12, 0.00},
    {2.1, 0.9, 0.00, 0.00, 0.00},
    {4.0, 1.2, 0.05, 0.00, 0.00},
    {0.4, 0.4, 0.40, 0.25, -0.03},
    {1.0, 0.7, 0.05, 0.00, 0.00},
    {0.3, 0.5, 0.75, 0.00, 0.00},
    {1.8, 0.9, 0.20, 0.00, 0.00},
}};

double UniformOf(uint32_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1.0p-32; }

template <size_t n>
bool Contains(const std::array<size_t, n>& list, size_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

double EffectOf(const CountShape& shape, int64_t count) {
  const double x = count == PlantedModel::kMissing
                       ? 0
                       : std::copysign(std::log1p(std::abs(static_cast<double>(count))),
                                       static_cast<double>(count));
  const double from_mean = x - shape.mean * (1 - shape.missing);
  return shape.slope * from_mean + shape.curve * from_mean * from_mean;
}

}  // namespace

PlantedModel::PlantedModel(uint64_t seed, double vocabulary) : seed_(seed), fields_(kFields) {
  for (size_t f = 0; f < kFields; ++f) {
    const double scale = kSizes[f] >= kLargeField ? vocabulary : 1.0;
    const double size = static_cast<double>(kSizes[f]) * scale;
    MakeField(f, std::max<size_t>(3, static_cast<size_t>(size)));
    MakeWeights(f, Contains(kNoise, f) ? 0 : kFieldVariance);
  }
  MakeFactors();
}

void PlantedModel::MakeField(size_t f, size_t size) {
  Field& field = fields_[f];
  double sum = 0;
  for (size_t id = 0; id < size; ++id) {
    field.frequency.push_back(std::pow(static_cast<double>(id + 1), -kPower));
    sum += field.frequency.back();
    const PhiloxBlock bits = Philox(StreamKey(seed_, kTextPurpose), f, id);
    const bool empty = id == kEmptyId && Contains(kWithEmptyCells, f);
    field.texts.push_back(empty ? "" : fmt::format("{:08x}", bits[0]));
  }
  for (double& frequency : field.frequency) frequency /= sum;
  MakeAlias(field);
}

// A. J. Walker, "An efficient method for generating discrete random variables with general
// distributions", ACM TOMS 3(3), 1977, in Vose's order of work.
void PlantedModel::MakeAlias(Field& field) {
  const size_t size = field.frequency.size();
  std::vector<double> share(size);
  std::vector<size_t> small, large;
  for (size_t id = 0; id < size; ++id) {
    share[id] = field.frequency[id] * static_cast<double>(size);
    (share[id] < 1 ? small : large).push_back(id);
  }
  field.keep.assign(size, ~uint32_t{0});
  field.alias.resize(size);
  for (size_t id = 0; id < size; ++id) field.alias[id] = static_cast<uint32_t>(id);
  while (!small.empty() && !large.empty()) {
    const size_t less = small.back(), more = large.back();
    small.pop_back();
    field.keep[less] = static_cast<uint32_t>(share[less] * 0x1.0p32);
    field.alias[less] = static_cast<uint32_t>(more);
    share[more] -= 1 - share[less];
    if (share[more] >= 1) continue;
    large.pop_back();
    small.push_back(more);
  }
}

// Rare strings have small weights, so that nearly everything can be learned from some 100,000 rows.
void PlantedModel::MakeWeights(size_t f, double variance) {
  Field& field = fields_[f];
  const size_t size = field.frequency.size();
  std::vector<float> normal(size);
  FillNormal(StreamKey(seed_, kWeightPurpose), f, normal);
  field.weights.resize(size);
  double mean = 0, square = 0;
  for (size_t id = 0; id < size; ++id) {
    const double frequency = field.frequency[id];
    const double weight = normal[id] * std::min(1.0, std::sqrt(frequency / 0.05));
    field.weights[id] = weight;
    mean += frequency * weight;
    square += frequency * weight * weight;
  }
  const double scale = std::sqrt(variance / std::max(1e-12, square - mean * mean));
  for (double& weight : field.weights) weight = (weight - mean) * scale;
  // Empty cells of all columns have the same key, and perhaps the same row of a table.
  if (Contains(kWithEmptyCells, f)) field.weights[kEmptyId] = 0;
}

// Factors are centred, so that the interactions of two pairs of columns do not correlate and their
// variances add up.
void PlantedModel::MakeFactors() {
  std::array<std::array<double, kRank * kRank>, kInteracting.size()> covariance{};
  for (size_t i = 0; i < kInteracting.size(); ++i) {
    Field& field = fields_[kInteracting[i]];
    const size_t size = field.frequency.size();
    std::vector<float> normal(size * kRank);
    FillNormal(StreamKey(seed_, kFactorPurpose), kInteracting[i], normal);
    Factor mean{};
    for (size_t id = 0; id < size; ++id) {
      for (size_t r = 0; r < kRank; ++r) mean[r] += field.frequency[id] * normal[id * kRank + r];
    }
    field.factors.resize(size);
    for (size_t id = 0; id < size; ++id) {
      Factor& factor = field.factors[id];
      for (size_t r = 0; r < kRank; ++r) factor[r] = normal[id * kRank + r] - mean[r];
      for (size_t rs = 0; rs < kRank * kRank; ++rs) {
        covariance[i][rs] += field.frequency[id] * factor[rs / kRank] * factor[rs % kRank];
      }
    }
  }
  // The variance of the sum over pairs of <u, v> is the trace of the covariances' product.
  double variance = 0;
  for (size_t i = 0; i < kInteracting.size(); ++i) {
    for (size_t j = i + 1; j < kInteracting.size(); ++j) {
      for (size_t rs = 0; rs < kRank * kRank; ++rs)
        variance += covariance[i][rs] * covariance[j][rs];
    }
  }
  const double scale = std::pow(kInteractionVariance / std::max(1e-12, variance), 0.25);
  for (const size_t f : kInteracting) {
    for (Factor& factor : fields_[f].factors) {
      for (double& value : factor) value *= scale;
    }
  }
}

double PlantedModel::Interaction(const std::array<uint32_t, kFields>& ids) const {
  Factor sum{};
  double squares = 0;
  for (const size_t f : kInteracting) {
    const Factor& factor = fields_[f].factors[ids[f]];
    for (size_t r = 0; r < kRank; ++r) {
      sum[r] += factor[r];
      squares += factor[r] * factor[r];
    }
  }
  double whole = 0;
  for (const double value : sum) whole += value * value;
  return 0.5 * (whole - squares);
}

int64_t PlantedModel::DrawCount(size_t count, const std::array<uint32_t, 4>& bits) const {
  const CountShape& shape = kCountShapes[count];
  if (UniformOf(bits[0]) < shape.missing) return kMissing;
  const double radius = std::sqrt(-2 * std::log(UniformOf(bits[1])));
  const double normal = radius * std::cos(2 * std::numbers::pi * UniformOf(bits[2]));
  const double log = shape.mean + shape.deviation * normal;
  // The second count goes down to -2, as it does in Criteo's data.
  if (count == 1 && log < 0) return log < -1 ? -2 : -1;
  return static_cast<int64_t>(std::expm1(std::clamp(log, 0.0, 14.0)));
}

PlantedModel::Sample PlantedModel::Draw(uint64_t row) const {
  const uint64_t stream = StreamKey(seed_, kRowPurpose);
  Sample sample;
  double logit = kIntercept;
  for (size_t f = 0; f < kFields; f += 2) {
    const PhiloxBlock bits = Philox(stream, row, f / 2);
    for (size_t half = 0; half < 2; ++half) {
      const Field& field = fields_[f + half];
      const uint64_t slot = uint64_t{bits[2 * half]} * field.keep.size() >> 32;
      const bool keep = bits[2 * half + 1] <= field.keep[slot];
      const uint32_t id = keep ? static_cast<uint32_t>(slot) : field.alias[slot];
      sample.ids[f + half] = id;
      logit += field.weights[id];
    }
  }
  logit += Interaction(sample.ids);
  for (size_t c = 0; c < kCounts; ++c) {
    sample.counts[c] = DrawCount(c, Philox(stream, row, kFields + c));
    const CountShape& shape = kCountShapes[c];
    if (shape.slope != 0) logit += EffectOf(shape, sample.counts[c]);
  }
  sample.probability = 1 / (1 + std::exp(-logit));
  sample.label = UniformOf(Philox(stream, row, 1000)[0]) < sample.probability;
  return sample;
}

}  // namespace dt::worker
