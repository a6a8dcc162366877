// Which order of a training job comes next. Training is cut into short orders, so that a stop finds
// a step boundary soon; they are handed out ahead. Everything else is handed out alone, when all
// before it is done.
//
//   train ──▶ boundary: evaluate? ─▶ save? ─┬─▶ train …
//                                           └─ end: restore the best? ─▶ test? ─▶ finish ─▶ done
// A plain state machine: it sends nothing and knows no process.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/cluster/job_result.h"
#include "scheduler/schedule/decisions.h"

namespace dt::scheduler {

// The part of a job that never changes.
struct ScheduleConfig {
  uint64_t train_rows = 0, valid_rows = 0, test_rows = 0;
  uint32_t batch_size = 1;
  uint32_t epochs = 1;
  Step max_steps = 0;               // 0: no limit.
  std::vector<std::string> losses;  // Their names.
  double learning_rate = 0;         // The optimizer's, before it is scaled.
  uint64_t save_every = 0;          // Steps; 0: at the end only.
  uint64_t evaluate_every = 0;      // Steps; 0: at the end of each epoch.
  std::optional<PlateauConfig> plateau;
  std::optional<EarlyStopConfig> early_stop;
  RateSchedule schedule;

  uint64_t steps_per_epoch() const { return (train_rows + batch_size - 1) / batch_size; }
  Step steps() const {
    return TrainConfig{.batch_size = batch_size, .epochs = epochs, .max_steps = max_steps}.steps(
        train_rows);
  }
};

// The state of a job at a step boundary. Checkpoints hold it.
struct ScheduleState {
  Step step = 0;  // Steps before it are done.
  uint64_t samples = 0;
  double train_seconds = 0;
  // For each loss, the sum over the samples since the current epoch began; at an epoch's end, over
  // the whole epoch.
  std::vector<double> epoch_loss_sums;
  uint64_t epoch_samples = 0;
  // For each loss, the mean over the job's first step, before the first update.
  std::vector<double> first_losses;
  std::optional<Step> evaluated;  // The last boundary that was evaluated.
  DecisionState decisions;
  std::vector<JobResult::Evaluation> history;
  std::vector<JobResult::CurvePoint> curve;
  DT_FIELDS(step, samples, train_seconds, epoch_loss_sums, epoch_samples, first_losses, evaluated,
            decisions, history, curve)
};

// The results of an order to train.
struct Trained {
  uint64_t samples = 0;
  std::vector<double> loss_sums;     // For each loss.
  std::vector<double> first_losses;  // For each loss, the mean over the first of the steps.
  double seconds = 0;
};

namespace schedule {
struct Train {
  uint64_t epoch = 0;  // From 0.
  Step epoch_first_step = 0, first_step = 0, end_step = 0;
  float lr_scale = 1;  // The plateau's; workers multiply it by the rate schedule's of each step.
  DT_FIELDS(epoch, epoch_first_step, first_step, end_step, lr_scale)
};
struct Evaluate {
  Step step = 0;
  bool test = false;
  DT_FIELDS(step, test)
};
struct Save {
  Step step = 0;
  bool best = false;  // Becomes the best one.
  DT_FIELDS(step, best)
};
struct Restore {  // The best one.
  Step step = 0;
  DT_FIELDS(step)
};
struct Finish {
  DT_FIELDS()
};
using Order = std::variant<Train, Evaluate, Save, Restore, Finish>;
}  // namespace schedule

// All that a schedule has to remember.
struct ScheduleRecord {
  ScheduleState state;
  std::optional<LossMetrics> test;     // The result of the evaluation on the test data.
  Step issued = 0;                     // Training is handed out up to here.
  uint32_t trains_out = 0;             // Number of orders to train that are not done.
  uint64_t chunk = 4;                  // Steps of the next order; follows the pace.
  std::optional<schedule::Order> out;  // The order other than training that is out.
  std::optional<Step> saved;           // The last boundary that is checkpointed.
  bool writing = false;                // A checkpoint is being written while training goes on.
  bool stop_requested = false, save_requested = false, restored = false, finished = false;
  DT_FIELDS(state, test, issued, trains_out, chunk, out, saved, writing, stop_requested,
            save_requested, restored, finished)
};
// A schedule that starts at `state`, whose step is checkpointed already if it is not 0.
ScheduleRecord ScheduleFrom(const ScheduleConfig& config, ScheduleState state);

class JobSchedule {
 public:
  // REQUIRES: `record` outlives the schedule, and is one of ScheduleFrom that only a schedule has
  // changed since.
  JobSchedule(const ScheduleConfig& config, ScheduleRecord& record)
      : config_(config), decisions_(config.plateau, config.early_stop), record_(record) {}

  // The next order, if it may go out now. Call until it gives none.
  std::optional<schedule::Order> Next();

  // Results, in the order of the orders.
  void OnTrained(Step end_step, const Trained& trained);
  void OnEvaluated(const LossMetrics& metrics);  // The evaluation that is out is done.
  void OnDone();                                 // Save, Restore or Finish is done.
  // Replaces OnDone for a Save whose content is fixed, so that training goes on while it is
  // written. No other Save goes out before OnWritten or OnAbandoned.
  void OnCut();
  void OnWritten() { record_.writing = false; }
  void OnAbandoned();
  // Ends at the next boundary, with a checkpoint if any are made during training.
  void RequestStop() { record_.stop_requested = true; }

  // A checkpoint at the next boundary, wherever that is.
  void RequestSave();

  bool finished() const { return record_.finished; }  // Finish is done.
  // Nothing is left to train.
  bool at_end() const {
    return record_.state.step >= config_.steps() || record_.state.decisions.stopped;
  }
  bool interrupted() const;                                 // Stopped on request; nothing is out.
  bool training() const { return record_.trains_out > 0; }  // An order to train is out.
  const ScheduleConfig& config() const { return config_; }
  const ScheduleState& state() const { return record_.state; }
  // Means over the epoch so far, rounded to nine digits: how training was cut into orders does not
  // show.
  LossMeans train() const;
  // `sums` by loss; nothing without samples.
  LossMeans MeansOf(const std::vector<double>& sums, uint64_t samples) const;
  // A loss's mean over the job's first step; nothing if it is not known.
  std::optional<double> FirstLossOf(std::string_view loss) const;
  // The optimizer's, as it is scaled now.
  double learning_rate() const;
  const std::optional<LossMetrics>& test() const { return record_.test; }
  // The factor on learning rates in the last step that was done: the plateau's and the schedule's.
  float lr_scale() const;
  bool keeps_best() const { return decisions_.keeps_best() && config_.valid_rows > 0; }

 private:
  std::optional<schedule::Order> NextTrain();
  std::optional<schedule::Order> NextAtBoundary();
  Step Boundary(Step from) const;
  bool EvaluationDue() const;
  bool SaveDue() const;
  bool RestoreDue() const;
  bool BestHere() const {
    return keeps_best() && record_.state.decisions.best_step == record_.state.step;
  }

  const ScheduleConfig config_;
  const Decisions decisions_;
  ScheduleRecord& record_;
};

}  // namespace dt::scheduler
