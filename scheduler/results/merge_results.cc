#include "scheduler/results/merge_results.h"

#include <algorithm>
#include <cmath>

#include "common/base/log_fields.h"
#include "common/base/text.h"
#include "common/metrics/auc.h"
#include "common/metrics/ranking.h"

namespace dt::scheduler {
namespace {

using Scored = std::span<const LossScores* const>;  // Of one loss, one entry for each worker.

// Sets the metrics that depend on the order of scores.
Status AddRanking(const LossConfig& config, Scored scored, Metrics& metrics) {
  std::vector<ScoreRun> runs;
  std::vector<GroupedRun> grouped;
  for (const LossScores* its : scored) {
    runs.push_back({its->scores, its->labels});
    grouped.push_back({runs.back(), its->groups});
    if (!config.group.empty() && its->groups.size() != its->scores.size()) {
      return Malformed("{} scores of an evaluation in groups, {} of them with a group",
                       its->scores.size(), its->groups.size());
    }
  }
  DT_TRY(const Auc auc, MergedAuc(runs));
  metrics.auc = auc.value;
  metrics.pr_auc = auc.pr;
  metrics.auc_exact = auc.exact;
  if (config.group.empty()) return OkStatus();
  const GroupMetrics groups = MergedGroupMetrics(grouped, config.top_k);
  metrics.gauc = groups.gauc;
  metrics.ndcg = groups.ndcg;
  metrics.recall = groups.recall;
  metrics.hit_rate = groups.hit_rate;
  metrics.mrr = groups.mrr;
  return OkStatus();
}

Result<Metrics> Merged(const LossConfig& config, Scored scored, bool in_parts) {
  std::vector<EvaluatePart> parts;
  uint64_t scores = 0;
  for (const LossScores* its : scored) {
    parts.insert(parts.end(), its->parts.begin(), its->parts.end());
    scores += its->scores.size();
  }
  std::sort(parts.begin(), parts.end(),
            [](const EvaluatePart& a, const EvaluatePart& b) { return a.batch < b.batch; });
  Metrics metrics;
  metrics.loss = config.name;
  double loss = 0, labels = 0, predictions = 0;
  uint64_t hits = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool twice = i > 0 && parts[i].batch == parts[i - 1].batch;
    if (in_parts ? twice : parts[i].batch != i) {
      return Malformed("batch {} of an evaluation is there twice or not at all",
                       in_parts ? parts[i].batch : i);
    }
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
  metrics.rmse = std::sqrt(loss / samples);
  metrics.accuracy = static_cast<double>(hits) / samples;
  if (labels > 0) metrics.calibration = predictions / labels;
  DT_TRY_STATUS(AddRanking(config, scored, metrics));
  for (const MetricInfo& metric : AllMetrics()) {
    if (!metric.IsOf(config.type, !config.group.empty())) (metrics.*metric.value).reset();
  }
  return metrics;
}

}  // namespace

bool Fits(const TrainDone& done, const TrainOrder& order, size_t losses) {
  const auto finite = [](double value) { return std::isfinite(value); };
  return done.end_step == order.end_step && done.loss_sums.size() == losses &&
         std::ranges::all_of(done.loss_sums, finite) &&
         (done.first_losses.empty() || done.first_losses.size() == losses) &&
         std::ranges::all_of(done.first_losses, finite);
}

Trained MergeTraining(const std::map<ProcessId, TrainDone>& reports, const TrainingKind& kind) {
  const TrainDone& first = reports.begin()->second;
  Trained all{first.samples, first.loss_sums, first.first_losses};
  if (kind.asynchronous) all = {.loss_sums = std::vector<double>(kind.losses)};
  for (const auto& [id, its] : reports) {
    all.seconds = std::max(all.seconds, its.seconds);
    if (!kind.asynchronous) continue;
    all.samples += its.samples;
    for (size_t l = 0; l < kind.losses; ++l) all.loss_sums[l] += its.loss_sums[l];
    if (all.first_losses.empty()) all.first_losses = its.first_losses;
  }
  return all;
}

Result<LossMetrics> MergeEvaluation(const std::map<ProcessId, EvaluateDone>& outcomes,
                                    std::span<const LossConfig> losses, bool in_parts) {
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
    DT_TRY(Metrics metrics, Merged(losses[l], scored, in_parts));
    all.push_back(std::move(metrics));
  }
  return all;
}

void LogEvaluation(const EvaluateOrder& order, const LossMetrics& metrics) {
  for (const Metrics& of : metrics) {
    std::vector<LogField> fields = {{"split", order.split == SplitKind::kTest ? "test" : "valid"},
                                    {"step", order.step},
                                    {"loss", of.loss}};
    for (const MetricInfo& metric : AllMetrics()) {
      const std::optional<double> value = of.*metric.value;
      if (value.has_value()) fields.emplace_back(metric.name, Rounded(*value, 6));
    }
    LogInfo("job.evaluated", fields);
  }
}

}  // namespace dt::scheduler
