#include "common/metrics/ranking.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/check.h"
#include "common/metrics/pair_counter.h"

namespace dt {
namespace {

struct Sample {
  Key group;
  float score;
  uint32_t positive;  // 0 or 1.
};

// The samples of a group that have one score.
struct Tie {
  uint64_t above = 0;  // Samples of the group with higher scores.
  uint64_t samples = 0, positives = 0;

  uint64_t end() const { return above + samples; }
  // How many of the tied samples are among the top k.
  uint64_t InTop(uint64_t top_k) const { return std::min(end(), top_k) - std::min(above, top_k); }
};

// The probability that none of `drawn` samples, drawn without replacement, is positive.
double MissProbability(const Tie& tie, uint64_t drawn) {
  if (drawn > tie.samples - tie.positives) return 0;
  double miss = 1;
  for (uint64_t i = 0; i < drawn; ++i) {
    miss *=
        static_cast<double>(tie.samples - tie.positives - i) / static_cast<double>(tie.samples - i);
  }
  return miss;
}

// The mean of 1 / rank over the ranks that the first positive sample of the tie may have.
double ReciprocalRank(const Tie& tie) {
  double mean = 0, missed = 1;  // `missed`: the probability that it has a later rank.
  for (uint64_t i = 0; i <= tie.samples - tie.positives; ++i) {
    const auto left = static_cast<double>(tie.samples - i);
    mean +=
        missed * static_cast<double>(tie.positives) / left / static_cast<double>(tie.above + i + 1);
    missed *= static_cast<double>(tie.samples - tie.positives - i) / left;
  }
  return mean;
}

class Means {
 public:
  explicit Means(uint32_t top_k) : top_k_(top_k) {}

  // `ascending`: all samples of one group. Groups come in ascending order.
  void AddGroup(std::span<const Sample> ascending) {
    ReadTies(ascending);
    PairCounter pairs;
    uint64_t positives = 0;
    for (const Tie& tie : ties_) {
      pairs.Add(tie.samples - tie.positives, tie.positives);
      positives += tie.positives;
    }
    if (const std::optional<double> auc = pairs.Value()) {
      const auto weight = static_cast<double>(ascending.size());
      sums_.gauc += weight * *auc;
      samples_ += weight;
    }
    if (positives == 0) return;
    sums_.ndcg += Ndcg(positives);
    sums_.recall += Recall(positives);
    sums_.hit_rate += HitRate();
    const auto first = std::find_if(ties_.rbegin(), ties_.rend(),
                                    [](const Tie& tie) { return tie.positives > 0; });
    sums_.mrr += ReciprocalRank(*first);
    groups_ += 1;
  }

  GroupMetrics Value() const {
    GroupMetrics means;
    if (samples_ > 0) means.gauc = sums_.gauc / samples_;
    if (groups_ == 0) return means;
    means.ndcg = sums_.ndcg / groups_;
    means.recall = sums_.recall / groups_;
    means.hit_rate = sums_.hit_rate / groups_;
    means.mrr = sums_.mrr / groups_;
    return means;
  }

 private:
  struct Sums {
    double gauc = 0, ndcg = 0, recall = 0, hit_rate = 0, mrr = 0;
  };

  // Fills ties_, in ascending order of scores.
  void ReadTies(std::span<const Sample> ascending) {
    ties_.clear();
    for (size_t at = 0; at < ascending.size();) {
      const float score = ascending[at].score;
      Tie tie;
      for (; at < ascending.size() && ascending[at].score == score; ++at) {
        tie.samples += 1;
        tie.positives += ascending[at].positive;
      }
      tie.above = ascending.size() - at;
      ties_.push_back(tie);
    }
  }

  // The sum of the discounts of ranks begin + 1 to end.
  double Discounts(uint64_t begin, uint64_t end) {
    while (discounts_.size() < end) {
      discounts_.push_back(1 / std::log2(static_cast<double>(discounts_.size() + 2)));
    }
    double sum = 0;
    for (uint64_t i = begin; i < end; ++i) sum += discounts_[i];
    return sum;
  }

  double Ndcg(uint64_t positives) {
    double sum = 0;
    for (auto tie = ties_.rbegin(); tie != ties_.rend() && tie->above < top_k_; ++tie) {
      if (tie->positives == 0) continue;
      const double share = static_cast<double>(tie->positives) / static_cast<double>(tie->samples);
      sum += share * Discounts(tie->above, std::min(tie->end(), top_k_));
    }
    return sum / Discounts(0, std::min(positives, top_k_));
  }

  double Recall(uint64_t positives) const {
    double found = 0;
    for (const Tie& tie : ties_) {
      found +=
          static_cast<double>(tie.positives * tie.InTop(top_k_)) / static_cast<double>(tie.samples);
    }
    return found / static_cast<double>(positives);
  }

  // At most one tie is partly among the top k.
  double HitRate() const {
    double miss = 1;
    for (const Tie& tie : ties_) miss *= MissProbability(tie, tie.InTop(top_k_));
    return 1 - miss;
  }

  const uint64_t top_k_;
  Sums sums_;
  double samples_ = 0, groups_ = 0;  // The sums of the weights, of gauc and of the others.
  std::vector<Tie> ties_;            // The ties of the group that is added.
  std::vector<double> discounts_;    // By rank, from 1.
};

std::vector<Sample> SortedSamples(std::span<const GroupedRun> runs) {
  size_t count = 0;
  for (const GroupedRun& run : runs) count += run.groups.size();
  std::vector<Sample> samples;
  samples.reserve(count);
  for (const auto& [run, groups] : runs) {
    DT_CHECK(groups.size() == run.scores.size());
    for (size_t i = 0; i < groups.size(); ++i) {
      samples.push_back({groups[i], run.scores[i], run.labels[i]});
    }
  }
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) {
    return a.group != b.group ? a.group < b.group : a.score < b.score;
  });
  return samples;
}

}  // namespace

GroupMetrics MergedGroupMetrics(std::span<const GroupedRun> runs, uint32_t top_k) {
  DT_CHECK(top_k >= 1);
  const std::vector<Sample> samples = SortedSamples(runs);
  Means means(top_k);
  for (size_t begin = 0; begin < samples.size();) {
    size_t end = begin + 1;
    while (end < samples.size() && samples[end].group == samples[begin].group) ++end;
    means.AddGroup(std::span(samples).subspan(begin, end - begin));
    begin = end;
  }
  return means.Value();
}

}  // namespace dt
