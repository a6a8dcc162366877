#include "common/metrics/auc.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <vector>

#include "common/metrics/pair_counter.h"

namespace dt {
namespace {

constexpr size_t kBins = 1 << 20;

// Sums the average precision.
class PrecisionSum {
 public:
  // The numbers of all samples and of the positive ones.
  PrecisionSum(uint64_t samples, uint64_t positives)
      : positives_(positives), above_(samples), positives_above_(positives) {}

  // Adds samples of one score. REQUIRES: scores ascend from call to call.
  void Add(uint64_t negatives, uint64_t positives) {
    // Without a positive sample the recall gains nothing.
    if (positives > 0) {
      sum_ += static_cast<double>(positives) * static_cast<double>(positives_above_) /
              static_cast<double>(above_);
    }
    above_ -= negatives + positives;
    positives_above_ -= positives;
  }
  std::optional<double> Value() const {
    if (positives_ == 0) return std::nullopt;
    return sum_ / static_cast<double>(positives_);
  }

 private:
  uint64_t positives_;
  // Samples with a score that has not been added.
  uint64_t above_, positives_above_;
  double sum_ = 0;
};

// Both areas at once.
class Areas {
 public:
  explicit Areas(std::span<const ScoreRun> runs) : precision_(PrecisionOf(runs)) {}

  // Adds samples of one score, or of one bin. REQUIRES: they ascend from call to call.
  void Add(uint64_t negatives, uint64_t positives) {
    pairs_.Add(negatives, positives);
    precision_.Add(negatives, positives);
  }
  Auc Value(bool exact) const { return {pairs_.Value(), precision_.Value(), exact}; }

 private:
  static PrecisionSum PrecisionOf(std::span<const ScoreRun> runs) {
    uint64_t samples = 0, positives = 0;
    for (const ScoreRun& run : runs) {
      samples += run.labels.size();
      positives += static_cast<uint64_t>(std::ranges::count(run.labels, uint8_t{1}));
    }
    return {samples, positives};
  }

  PairCounter pairs_;
  PrecisionSum precision_;
};

struct Head {
  float score;
  size_t run;
  friend bool operator>(const Head& a, const Head& b) { return a.score > b.score; }
};

Status CheckRun(const ScoreRun& run) {
  if (run.scores.size() != run.labels.size()) {
    return Malformed("{} scores with {} labels", run.scores.size(), run.labels.size());
  }
  for (size_t i = 0; i < run.scores.size(); ++i) {
    if (std::isnan(run.scores[i])) return Malformed("a score is not a number");
    if (i > 0 && run.scores[i] < run.scores[i - 1]) return Malformed("scores are not ascending");
    if (run.labels[i] > 1) return Malformed("label {} is neither 0 nor 1", run.labels[i]);
  }
  return OkStatus();
}

size_t BinOf(float score) {
  const double probability = 1.0 / (1.0 + std::exp(-static_cast<double>(score)));
  return std::min(kBins - 1, static_cast<size_t>(probability * static_cast<double>(kBins)));
}

}  // namespace

Auc ExactAuc(std::span<const ScoreRun> runs) {
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  std::vector<size_t> next(runs.size(), 0);
  const auto push_head = [&](size_t run) {
    if (next[run] < runs[run].scores.size()) heads.push({runs[run].scores[next[run]], run});
  };
  for (size_t run = 0; run < runs.size(); ++run) push_head(run);
  Areas areas(runs);
  while (!heads.empty()) {
    const float score = heads.top().score;
    uint64_t counts[2] = {0, 0};
    while (!heads.empty() && heads.top().score == score) {
      const size_t run = heads.top().run;
      heads.pop();
      const auto& [scores, labels] = runs[run];
      size_t& at = next[run];
      for (; at < scores.size() && scores[at] == score; ++at) ++counts[labels[at]];
      push_head(run);
    }
    areas.Add(counts[0], counts[1]);
  }
  return areas.Value(true);
}

Auc BinnedAuc(std::span<const ScoreRun> runs) {
  std::vector<uint64_t> counts(2 * kBins, 0);
  for (const ScoreRun& run : runs) {
    for (size_t i = 0; i < run.scores.size(); ++i)
      ++counts[2 * BinOf(run.scores[i]) + run.labels[i]];
  }
  Areas areas(runs);
  for (size_t bin = 0; bin < kBins; ++bin) areas.Add(counts[2 * bin], counts[2 * bin + 1]);
  return areas.Value(false);
}

Result<Auc> MergedAuc(std::span<const ScoreRun> runs) {
  uint64_t samples = 0;
  for (const ScoreRun& run : runs) {
    DT_TRY_STATUS(CheckRun(run));
    samples += run.scores.size();
  }
  return samples <= kExactAucSamplesMax ? ExactAuc(runs) : BinnedAuc(runs);
}

}  // namespace dt
