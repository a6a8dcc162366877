#include "scheduler/service/evaluation.h"

#include <algorithm>

#include "common/metrics/auc.h"

namespace dt::scheduler {
namespace {

// `scored`: of one loss, of each worker.
Result<Metrics> Merged(const LossConfig& loss_config, std::span<const LossScores* const> scored) {
  std::vector<EvaluatePart> parts;
  std::vector<ScoreRun> runs;
  uint64_t scores = 0;
  for (const LossScores* its : scored) {
    parts.insert(parts.end(), its->parts.begin(), its->parts.end());
    runs.push_back({its->scores, its->labels});
    scores += its->scores.size();
  }
  std::sort(parts.begin(), parts.end(),
            [](const EvaluatePart& a, const EvaluatePart& b) { return a.batch < b.batch; });
  Metrics metrics;
  metrics.loss = loss_config.name;
  double loss = 0, labels = 0, predictions = 0;
  uint64_t hits = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].batch != i)
      return Malformed("batch {} of an evaluation is there twice or not at all", i);
    metrics.samples += parts[i].samples;
    loss += parts[i].loss_sum;
    labels += parts[i].label_sum;
    predictions += parts[i].prediction_sum;
    hits += parts[i].hits;
  }
  if (scores != 0 && scores != metrics.samples) {
    return Malformed("{} scores of an evaluation of {} samples", scores, metrics.samples);
  }
  if (metrics.samples == 0) return metrics;
  const auto samples = static_cast<double>(metrics.samples);
  metrics.logloss = loss / samples;
  if (labels > 0) metrics.calibration = predictions / labels;
  if (loss_config.ranks()) metrics.accuracy = static_cast<double>(hits) / samples;
  DT_TRY(const Auc auc, MergedAuc(runs));
  metrics.auc = auc.value;
  metrics.auc_exact = auc.exact;
  return metrics;
}

}  // namespace

Result<LossMetrics> MergeEvaluation(const std::map<ProcessId, EvaluateDone>& outcomes,
                                    std::span<const LossConfig> losses) {
  LossMetrics all;
  for (size_t l = 0; l < losses.size(); ++l) {
    std::vector<const LossScores*> scored;
    for (const auto& [id, done] : outcomes) {
      if (done.losses.size() != losses.size()) {
        return Malformed("an evaluation of {} losses says something about {}", losses.size(),
                         done.losses.size());
      }
      scored.push_back(&done.losses[l]);
    }
    DT_TRY(Metrics metrics, Merged(losses[l], scored));
    all.push_back(std::move(metrics));
  }
  return all;
}

}  // namespace dt::scheduler
