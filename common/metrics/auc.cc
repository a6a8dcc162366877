#include "common/metrics/auc.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <vector>

namespace dt {
namespace {

constexpr size_t kBins = 1 << 20;

// Counts pairs of a positive and a negative sample. Add is called for groups of equal scores, in
// ascending order.
class PairCounter {
 public:
  void Add(uint64_t negatives, uint64_t positives) {
    won_twice_ += static_cast<unsigned __int128>(positives) * (2 * negatives_ + negatives);
    negatives_ += negatives;
    positives_ += positives;
  }
  std::optional<double> Value() const {
    if (negatives_ == 0 || positives_ == 0) return std::nullopt;
    const double pairs = static_cast<double>(negatives_) * static_cast<double>(positives_);
    return static_cast<double>(won_twice_) / 2.0 / pairs;
  }

 private:
  // Twice the number of pairs that the positive sample wins, plus the number of ties.
  unsigned __int128 won_twice_ = 0;
  uint64_t negatives_ = 0, positives_ = 0;
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

std::optional<double> ExactAuc(std::span<const ScoreRun> runs) {
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  std::vector<size_t> next(runs.size(), 0);
  const auto push_head = [&](size_t run) {
    if (next[run] < runs[run].scores.size()) heads.push({runs[run].scores[next[run]], run});
  };
  for (size_t run = 0; run < runs.size(); ++run) push_head(run);
  PairCounter counter;
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
    counter.Add(counts[0], counts[1]);
  }
  return counter.Value();
}

std::optional<double> BinnedAuc(std::span<const ScoreRun> runs) {
  std::vector<uint64_t> counts(2 * kBins, 0);
  for (const ScoreRun& run : runs) {
    for (size_t i = 0; i < run.scores.size(); ++i)
      ++counts[2 * BinOf(run.scores[i]) + run.labels[i]];
  }
  PairCounter counter;
  for (size_t bin = 0; bin < kBins; ++bin) counter.Add(counts[2 * bin], counts[2 * bin + 1]);
  return counter.Value();
}

Result<Auc> MergedAuc(std::span<const ScoreRun> runs) {
  uint64_t samples = 0;
  for (const ScoreRun& run : runs) {
    DT_TRY_STATUS(CheckRun(run));
    samples += run.scores.size();
  }
  if (samples <= kExactAucSamplesMax) return Auc{ExactAuc(runs), true};
  return Auc{BinnedAuc(runs), false};
}

}  // namespace dt
