// The course of a job: which order comes next. Training is cut into short orders, so that a stop
// finds a step boundary soon; they are handed out ahead. Everything else is handed out alone, when
// all before it is done.
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
#include "scheduler/splits/decisions.h"

namespace dt::scheduler {

// What never changes in a job.
struct CourseConfig {
  uint64_t train_rows = 0, valid_rows = 0, test_rows = 0;
  uint32_t batch_size = 1;
  uint64_t epochs = 1;
  std::vector<std::string> losses;  // Their names.
  double learning_rate = 0;         // The optimizer's, before it is scaled.
  uint64_t save_every = 0;          // Steps; 0: at the end only.
  uint64_t evaluate_every = 0;      // Steps; 0: at the end of each epoch.
  std::optional<PlateauConfig> plateau;
  std::optional<EarlyStopConfig> early_stop;

  uint64_t steps_per_epoch() const { return (train_rows + batch_size - 1) / batch_size; }
  Step steps() const { return steps_per_epoch() * epochs; }
};

// Where a job is at a step boundary: what a checkpoint holds.
struct CourseState {
  Step step = 0;  // Steps before it are done.
  uint64_t samples = 0;
  double train_seconds = 0;
  // By loss: its sum over the samples since the current epoch began; at its end, of the epoch.
  std::vector<double> epoch_loss_sums;
  uint64_t epoch_samples = 0;
  // By loss: its mean over the job's first step, before the first update.
  std::vector<double> first_losses;
  std::optional<Step> evaluated;  // The last boundary that was evaluated.
  DecisionState decisions;
  std::vector<JobResult::Evaluation> history;
  std::vector<JobResult::CurvePoint> curve;
};

// What an order to train has left.
struct Trained {
  uint64_t samples = 0;
  std::vector<double> loss_sums;     // By loss.
  std::vector<double> first_losses;  // By loss: its mean over the first of the steps.
  double seconds = 0;
};

namespace course {
struct Train {
  uint64_t epoch = 0;  // From 0.
  Step epoch_first_step = 0, first_step = 0, end_step = 0;
  float rate_scale = 1;
};
struct Evaluate {
  Step step = 0;
  bool test = false;
};
struct Save {
  Step step = 0;
  bool best = false;  // Becomes the best one.
};
struct Restore {  // The best one.
  Step step = 0;
};
struct Finish {};
using Order = std::variant<Train, Evaluate, Save, Restore, Finish>;
}  // namespace course

class Course {
 public:
  // Starts at `state`, whose step is checkpointed already if it is not 0.
  Course(const CourseConfig& config, CourseState state);

  // The next order, if it may go out now. Call until it gives none.
  std::optional<course::Order> Next();

  // Results, in the order of the orders.
  void OnTrained(Step end_step, const Trained& trained);
  void OnEvaluated(const LossMetrics& metrics);  // Of the evaluation that is out.
  void OnDone();                                 // Save, Restore or Finish is done.
  // Instead of it: what Save saves is fixed, and training goes on while it is written. It will be
  // the last such order until OnWritten, or OnAbandoned.
  void OnCut();
  void OnWritten() { writing_ = false; }
  void OnAbandoned();
  // Ends at the next boundary, with a checkpoint if any are made during training.
  void RequestStop() { stop_requested_ = true; }

  // A checkpoint at the next boundary, wherever that is.
  void RequestSave();

  bool finished() const { return finished_; }  // Finish is done.
  // Nothing is left to train.
  bool at_end() const { return state_.step >= config_.steps() || state_.decisions.stopped; }
  bool interrupted() const;                          // Stopped on request; nothing is out.
  bool training() const { return trains_out_ > 0; }  // An order to train is out.
  const CourseConfig& config() const { return config_; }
  const CourseState& state() const { return state_; }
  // Means over the epoch so far, rounded to nine digits: how training was cut into orders does not
  // show.
  LossMeans train() const;
  // `sums` by loss; nothing without samples.
  LossMeans MeansOf(const std::vector<double>& sums, uint64_t samples) const;
  // A loss's mean over the job's first step; nothing if it is not known.
  std::optional<double> FirstLossOf(std::string_view loss) const;
  // The optimizer's, as it is scaled now.
  double learning_rate() const;
  const std::optional<LossMetrics>& test() const { return test_; }
  bool keeps_best() const { return decisions_.keeps_best() && config_.valid_rows > 0; }

 private:
  std::optional<course::Order> NextTrain();
  std::optional<course::Order> NextAtBoundary();
  Step Boundary(Step from) const;
  bool EvaluationDue() const;
  bool SaveDue() const;
  bool RestoreDue() const;
  bool BestHere() const { return keeps_best() && state_.decisions.best_step == state_.step; }

  const CourseConfig config_;
  const Decisions decisions_;
  CourseState state_;
  std::optional<LossMetrics> test_;

  Step issued_ = 0;  // Training is handed out up to here.
  uint32_t trains_out_ = 0;
  uint64_t chunk_ = 4;                // Steps of the next order; follows the pace.
  std::optional<course::Order> out_;  // The order other than training that is out.
  std::optional<Step> saved_;         // The last boundary that is checkpointed.
  bool writing_ = false;
  bool stop_requested_ = false, save_requested_ = false, restored_ = false, finished_ = false;
};

}  // namespace dt::scheduler
