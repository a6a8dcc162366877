#include "scheduler/service/evaluation.h"

#include <algorithm>

#include "common/metrics/auc.h"

namespace dt::scheduler {

Result<Metrics> MergeEvaluation(const std::map<ProcessId, EvaluateDone>& outcomes) {
  std::vector<EvaluatePart> parts;
  std::vector<ScoreRun> runs;
  uint64_t scores = 0;
  for (const auto& [id, done] : outcomes) {
    parts.insert(parts.end(), done.parts.begin(), done.parts.end());
    runs.push_back({done.scores, done.labels});
    scores += done.scores.size();
  }
  std::sort(parts.begin(), parts.end(),
            [](const EvaluatePart& a, const EvaluatePart& b) { return a.batch < b.batch; });
  Metrics metrics;
  double loss = 0, labels = 0, predictions = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].batch != i)
      return Malformed("batch {} of an evaluation is there twice or not at all", i);
    metrics.samples += parts[i].samples;
    loss += parts[i].loss_sum;
    labels += parts[i].label_sum;
    predictions += parts[i].prediction_sum;
  }
  if (scores != 0 && scores != metrics.samples) {
    return Malformed("{} scores of an evaluation of {} samples", scores, metrics.samples);
  }
  if (metrics.samples == 0) return metrics;
  metrics.logloss = loss / static_cast<double>(metrics.samples);
  if (labels > 0) metrics.calibration = predictions / labels;
  DT_TRY(const Auc auc, MergedAuc(runs));
  metrics.auc = auc.value;
  metrics.auc_exact = auc.exact;
  return metrics;
}

}  // namespace dt::scheduler
