// Decides which order of a training job comes next. Training is divided into short orders; so many
// are issued ahead, up to the next step at which something else may be due, that workers can go on
// without a scheduler for a while. A stop request recalls those that nobody has begun, so that a
// step boundary is soon found. Every other order is issued alone, when all before it are done.
//
//   train ──▶ boundary: evaluate? ─▶ save? ─┬─▶ train …
//                                           └─ end: restore the best? ─▶ test? ─▶ finish ─▶ done
// A plain state machine: it sends nothing and knows no processes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/cluster/job_result.h"
#include "scheduler/schedule/decisions.h"
#include "scheduler/schedule/stream.h"

namespace dt::scheduler {

// The constant part of a job.
struct ScheduleConfig {
  uint64_t train_rows = 0, valid_rows = 0, test_rows = 0;
  std::vector<uint64_t> stripe_rows = {};  // StartMessage::stripe_rows.
  uint32_t batch_size = 1;
  uint32_t epochs = 1;
  Step max_steps = 0;               // 0: no limit.
  std::vector<std::string> losses;  // The names of the losses.
  double learning_rate = 0;         // The optimizer's rate, before scaling.
  uint64_t save_every = 0;          // Steps; 0: at the end only.
  uint64_t evaluate_every = 0;      // Steps; 0: at the end of each epoch.
  std::optional<PlateauConfig> plateau;
  std::optional<EarlyStopConfig> early_stop;
  RateSchedule schedule;
  double seconds_ahead = 0;  // Training that is to be issued ahead; two orders are in any case.
  // The job trains on a stream, which is one epoch without an end. Unless there are validation
  // rows, it evaluates windows of the stream before they are trained on.
  std::optional<StreamLimits> stream = {};

  bool has_windows() const { return stream.has_value() && valid_rows == 0 && evaluate_every > 0; }
  bool evaluates() const { return valid_rows > 0 || has_windows(); }
  uint64_t steps_per_epoch() const {
    if (stream.has_value()) return kEndless;
    return TrainConfig{.batch_size = batch_size}.steps_per_epoch(train_rows, stripe_rows);
  }
  Step steps() const {
    return TrainConfig{.epochs = epochs, .max_steps = max_steps}.steps(steps_per_epoch());
  }
};

// The state of a job at a step boundary. Checkpoints hold it.
struct ScheduleState {
  Step step = 0;  // Steps before it are done.
  uint64_t samples = 0;
  double train_seconds = 0;
  // For each loss, the sum over the samples of the current epoch so far. At the end of an epoch it
  // is the sum over that epoch.
  std::vector<double> epoch_loss_sums;
  uint64_t epoch_samples = 0;
  // For each loss, the mean over the job's first step, before the first update.
  std::vector<double> first_losses;
  std::optional<Step> evaluated;  // The last step at which the model was evaluated.
  DecisionState decisions;
  std::vector<JobResult::Evaluation> history;
  std::vector<JobResult::CurvePoint> curve;
  // Of a stream, by partition: messages before are trained on.
  std::optional<std::vector<uint64_t>> offsets = {};
  DT_FIELDS(step, samples, train_seconds, epoch_loss_sums, epoch_samples, first_losses, evaluated,
            decisions, history, curve, offsets)
};

// The results of an order to train.
struct Trained {
  uint64_t samples = 0;
  std::vector<double> loss_sums;     // For each loss.
  std::vector<double> first_losses;  // For each loss, the mean over the first step of the order.
  double seconds = 0;                // That the slowest worker took.
  // That training took, if it is not the same since workers overlap.
  std::optional<double> passed;
  std::optional<std::vector<uint64_t>> offsets = {};  // ScheduleState::offsets from now on.
};

namespace schedule {
struct Train {
  uint64_t epoch = 0;  // From 0.
  Step epoch_first_step = 0, first_step = 0, end_step = 0;
  // The plateau's factor; workers multiply it by the rate schedule's factor for each step.
  float lr_scale = 1;
  StreamCut cut = {};  // TrainOrder::cut.
  DT_FIELDS(epoch, epoch_first_step, first_step, end_step, lr_scale, cut)
};
struct Evaluate {
  Step step = 0;
  bool test = false;
  StreamCut cut = {};  // EvaluateOrder::cut.
  DT_FIELDS(step, test, cut)
};
struct Save {
  Step step = 0;
  bool best = false;  // Whether it becomes the best checkpoint.
  DT_FIELDS(step, best)
};
struct Restore {  // Loads the best checkpoint.
  Step step = 0;
  DT_FIELDS(step)
};
struct Finish {
  DT_FIELDS()
};
using Order = std::variant<Train, Evaluate, Save, Restore, Finish>;
}  // namespace schedule

// The state of a schedule; a part of the job's record.
struct ScheduleRecord {
  ScheduleState state;
  std::optional<LossMetrics> test;  // The result of the evaluation on the test data.
  Step issued = 0;                  // Steps before it have been issued for training.
  uint32_t trains_out = 0;          // Number of training orders that are not done.
  // Steps of the next training order, chosen so that an order takes a fixed time.
  uint64_t chunk = 4;
  double step_seconds = 0;  // As the last training order took; 0: unknown.
  bool recalled = false;    // The orders out now are what a recall has left, or is about to leave.
  std::optional<schedule::Order> out;  // The issued order, if it is not one to train.
  std::optional<Step> saved;           // The step of the last checkpoint.
  bool writing = false;                // A checkpoint is being written while training goes on.
  // The best evaluation, if its checkpoint is that one; the last one that has a checkpoint.
  std::optional<BestEvaluation> best_in_writing, best_kept;
  bool stop_requested = false, save_requested = false, restored = false, finished = false;
  bool paused = false;  // No order to train is issued.
  StreamRecord stream = {};
  DT_FIELDS(state, test, issued, trains_out, chunk, step_seconds, recalled, out, saved, writing,
            best_in_writing, best_kept, stop_requested, save_requested, restored, finished, paused,
            stream)
};
// A schedule that starts at `state`; a step above 0 counts as saved.
ScheduleRecord ScheduleFrom(const ScheduleConfig& config, ScheduleState state);

class JobSchedule {
 public:
  // REQUIRES: `record` outlives the schedule; it was made by ScheduleFrom and changed only by a
  // schedule.
  JobSchedule(const ScheduleConfig& config, ScheduleRecord& record)
      : config_(config), decisions_(config.plateau, config.early_stop), record_(record) {
    if (config.stream.has_value()) stream_.emplace(*config.stream, record.stream);
  }

  // The next order, if one may be issued now. Call until it returns nothing.
  std::optional<schedule::Order> Next(TimePoint now = {});
  // How many of the training orders that are out are to stay, if the others are to be recalled now.
  // Returns a number only once for each boundary that is asked for.
  std::optional<size_t> TakeRecall();
  // Nobody has begun the last `orders` training orders, and nobody will; they begin at `step`, and
  // with `first` of a stream.
  void OnRecalled(Step step, size_t orders, const StreamCut& first = {});
  // REQUIRES: the job trains on a stream.
  void OnStreamReport(const StreamReportMessage& report) { stream_->OnReport(report); }

  // Results of training orders, in the order in which they were issued.
  void OnTrained(Step end_step, const Trained& trained);
  void OnEvaluated(const LossMetrics& metrics);  // The issued evaluation is done.
  void OnDone();                                 // Save, Restore or Finish is done.
  // Call instead of OnDone for a Save whose content is fixed: training goes on while it is written.
  // No other Save is issued before OnWritten or OnAbandoned.
  void OnCut();
  void OnWritten();
  // It is made again if nothing was trained since. Otherwise the step's model is gone: false if it
  // was the best, whose place the one before it takes.
  [[nodiscard]] bool OnAbandoned();
  // Ends at the next boundary; makes a checkpoint if the job makes any during training.
  void RequestStop() { record_.stop_requested = true; }
  // Issues no order to train until it is called with false. Those that nobody has begun are
  // recalled.
  void SetPaused(bool paused) { record_.paused = paused; }

  // Makes a checkpoint at the next boundary, whether or not one is due.
  void RequestSave();

  bool finished() const { return record_.finished; }  // Finish is done.
  // All training is done.
  bool at_end() const {
    const bool drained = stream_ && stream_->at_end() && record_.issued == record_.state.step;
    return record_.state.step >= config_.steps() || record_.state.decisions.stopped || drained;
  }
  bool interrupted() const;  // Stopped on request, and no order is out.
  bool training() const { return record_.trains_out > 0; }  // An order to train is out.
  const ScheduleConfig& config() const { return config_; }
  const ScheduleState& state() const { return record_.state; }
  // Means over the epoch so far. Rounded to nine digits, so that they do not depend on how training
  // was divided into orders.
  LossMeans train() const;
  // `sums` by loss; empty without samples.
  LossMeans MeansOf(const std::vector<double>& sums, uint64_t samples) const;
  // A loss's mean over the job's first step; empty if unknown.
  std::optional<double> FirstLossOf(std::string_view loss) const;
  // The optimizer's current rate.
  double learning_rate() const;
  const std::optional<LossMetrics>& test() const { return record_.test; }
  // The factor on learning rates in the last completed step: the plateau's times the schedule's.
  float lr_scale() const;
  bool keeps_best() const { return decisions_.keeps_best() && config_.valid_rows > 0; }

 private:
  std::optional<schedule::Order> NextTrain(TimePoint now);
  std::optional<schedule::Order> NextAtBoundary(TimePoint now);
  std::optional<schedule::Order> NextEvaluation(TimePoint now);
  bool EnoughOut() const;
  Step Boundary(Step from) const;
  Step OrderEnd(Step from) const;
  uint64_t EvaluateEvery() const;
  bool EvaluationDue() const;
  bool SaveDue() const;
  bool RestoreDue() const;
  bool BestHere() const {
    return keeps_best() && record_.state.decisions.best_step == record_.state.step;
  }

  const ScheduleConfig config_;
  const Decisions decisions_;
  ScheduleRecord& record_;
  std::optional<Stream> stream_;
};

}  // namespace dt::scheduler
