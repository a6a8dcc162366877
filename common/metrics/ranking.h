// Metrics of samples in groups, such as the samples of one user or of one query, which several
// processes hold in parts. Pure functions.
//
// A group has all samples with one id. They are ranked by score, the highest first, from 1. Where
// samples tie, a group's metric is its mean over all orders of the tied samples; so it does not
// depend on the order in which samples come. NDCG is then that of scikit-learn's ndcg_score.
//
//   gauc      the area under the ROC curve of the group's samples, where ties count half
//   ndcg      the sum of 1 / log2(1 + rank) over the positive samples with a rank up to k,
//             divided by the largest sum that any order has
//   recall    the positive samples with a rank up to k / all positive samples
//   hit_rate  1 if a positive sample has a rank up to k, else 0
//   mrr       1 / the rank of the first positive sample, whatever that rank
//
// The result is the mean over groups. For gauc a group's weight is its number of samples (Zhou et
// al., Deep Interest Network, 2018), and groups of a single class are left out. For the others all
// weights are equal, and groups without a positive sample are left out. Sums run over ascending ids
// in float64, so the result does not depend on how the samples are distributed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "common/base/ids.h"
#include "common/metrics/auc.h"

namespace dt {

// The samples of one process, each with the id of its group.
struct GroupedRun {
  ScoreRun samples;
  std::span<const Key> groups;
};

// A metric is absent if no group counts for it.
struct GroupMetrics {
  std::optional<double> gauc, ndcg, recall, hit_rate, mrr;
  friend bool operator==(const GroupMetrics&, const GroupMetrics&) = default;
};

// Takes 16 bytes of memory for each sample. REQUIRES: runs have as many groups as samples and are
// otherwise valid as for MergedAuc; top_k >= 1.
GroupMetrics MergedGroupMetrics(std::span<const GroupedRun> runs, uint32_t top_k);

}  // namespace dt
