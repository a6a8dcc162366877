#include "scheduler/schedule/job_schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/check.h"
#include "scheduler/schedule/loss_curve.h"

namespace dt::scheduler {
namespace {

// At least so many training orders are out, and at most.
constexpr uint32_t kTrainsAhead = 2, kTrainsAheadMax = 256;
constexpr double kOrderSeconds = 0.4;
constexpr uint64_t kOrderStepsMax = 4096;

// A stream may have no end, so that its oldest evaluations are dropped.
constexpr size_t kEvaluationsKept = 1000;

Step NextMultiple(Step above, uint64_t of) { return (above / of + 1) * of; }

double Rounded(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10.0, digits - 1 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

}  // namespace

ScheduleRecord ScheduleFrom(const ScheduleConfig& config, ScheduleState state) {
  ScheduleRecord record;
  // The manifest may not fit the job's losses.
  const size_t losses = config.losses.size();
  state.epoch_loss_sums.resize(losses);
  if (state.first_losses.size() != losses) state.first_losses.clear();
  std::erase_if(state.curve, [&](const auto& point) { return point.losses.size() != losses; });
  record.issued = state.step;
  if (state.step > 0) record.saved = state.step;
  record.best_kept = BestOf(state.decisions);
  record.state = std::move(state);
  return record;
}

std::optional<schedule::Order> JobSchedule::Next(TimePoint now) {
  if (record_.out.has_value() || record_.finished) return std::nullopt;
  if (record_.trains_out > 0) return NextTrain(now);
  std::optional<schedule::Order> order = NextAtBoundary(now);
  if (!order.has_value()) return NextTrain(now);
  if (record_.writing && !std::holds_alternative<schedule::Evaluate>(*order)) return std::nullopt;
  return record_.out = order;
}

// The first step after `from` at which an order other than training may be due.
Step JobSchedule::Boundary(Step from) const {
  Step boundary = config_.steps();
  if (config_.save_every > 0) {
    boundary = std::min(boundary, NextMultiple(from, config_.save_every));
  }
  if (config_.evaluates()) boundary = std::min(boundary, NextMultiple(from, EvaluateEvery()));
  return boundary;
}

// The end of a training order that begins at `from`.
Step JobSchedule::OrderEnd(Step from) const {
  const Step epoch_end = NextMultiple(from, config_.steps_per_epoch());
  return std::min({Boundary(from), epoch_end, from + record_.chunk});
}

uint64_t JobSchedule::EvaluateEvery() const {
  return config_.evaluate_every > 0 ? config_.evaluate_every : config_.steps_per_epoch();
}

bool JobSchedule::EnoughOut() const {
  if (record_.trains_out < kTrainsAhead) return false;
  if (record_.trains_out >= kTrainsAheadMax || record_.step_seconds == 0) return true;
  const auto steps = static_cast<double>(record_.issued - record_.state.step);
  return steps * record_.step_seconds >= config_.seconds_ahead;
}

std::optional<schedule::Order> JobSchedule::NextTrain(TimePoint now) {
  if (record_.stop_requested || record_.paused || at_end() || EnoughOut()) return std::nullopt;
  // All steps up to the boundary are issued.
  if (record_.issued == Boundary(record_.state.step)) return std::nullopt;
  if (record_.save_requested && record_.trains_out > 0) return std::nullopt;
  Step end = OrderEnd(record_.issued);
  StreamCut cut;
  if (stream_) {
    std::optional<StreamCut> taken = stream_->Take(end - record_.issued, now);
    if (!taken.has_value()) return std::nullopt;
    cut = *std::move(taken);
    end = record_.issued + stream_->StepsOf(cut);
  }
  const uint64_t per_epoch = config_.steps_per_epoch();
  const uint64_t epoch = record_.issued / per_epoch;
  schedule::Train train{
      epoch,         epoch * per_epoch, record_.issued, end, record_.state.decisions.rate_scale,
      std::move(cut)};
  record_.issued = end;
  ++record_.trains_out;
  return train;
}

std::optional<size_t> JobSchedule::TakeRecall() {
  const bool asked = record_.stop_requested || record_.save_requested || record_.paused;
  if (!asked || record_.recalled || record_.trains_out <= kTrainsAhead) return std::nullopt;
  record_.recalled = true;
  return kTrainsAhead;
}

void JobSchedule::OnRecalled(Step step, size_t orders, const StreamCut& first) {
  DT_CHECK(orders <= record_.trains_out && step >= record_.state.step && step <= record_.issued);
  record_.trains_out -= static_cast<uint32_t>(orders);
  record_.issued = step;
  if (stream_) stream_->GiveBack(first);
}

float JobSchedule::lr_scale() const {
  const Step last = record_.state.step > 0 ? record_.state.step - 1 : 0;
  return static_cast<float>(record_.state.decisions.rate_scale *
                            config_.schedule.ScaleAt(last, config_.steps()));
}

bool JobSchedule::EvaluationDue() const {
  if (!config_.evaluates() || record_.state.step == 0 ||
      record_.state.evaluated == record_.state.step)
    return false;
  if (record_.state.step == config_.steps()) return true;
  return record_.state.step % EvaluateEvery() == 0;
}

bool JobSchedule::SaveDue() const {
  if (record_.state.step == 0 || record_.saved == record_.state.step) return false;
  if (record_.save_requested && !record_.stop_requested) return true;
  if (config_.save_every > 0 &&
      (record_.stop_requested || record_.state.step % config_.save_every == 0)) {
    return true;
  }
  return !record_.stop_requested && (at_end() || BestHere());
}

bool JobSchedule::RestoreDue() const {
  const std::optional<Step>& best = record_.state.decisions.best_step;
  return !record_.restored && keeps_best() && best.has_value() && best != record_.state.step;
}

std::optional<schedule::Order> JobSchedule::NextEvaluation(TimePoint now) {
  if (record_.stop_requested || !EvaluationDue()) return std::nullopt;
  schedule::Evaluate evaluate{record_.state.step, false};
  if (config_.has_windows()) {
    if (stream_->holds()) return std::nullopt;
    std::optional<StreamCut> window = stream_->Hold(config_.evaluate_every, now);
    if (!window.has_value()) return std::nullopt;
    evaluate.cut = *std::move(window);
  }
  return evaluate;
}

std::optional<schedule::Order> JobSchedule::NextAtBoundary(TimePoint now) {
  if (auto evaluation = NextEvaluation(now)) return evaluation;
  if (SaveDue()) return schedule::Save{record_.state.step, BestHere()};
  if (record_.stop_requested || !at_end()) return std::nullopt;
  const Step position = keeps_best()
                            ? record_.state.decisions.best_step.value_or(record_.state.step)
                            : record_.state.step;
  if (RestoreDue()) return schedule::Restore{position};
  if (config_.test_rows > 0 && !record_.test.has_value()) return schedule::Evaluate{position, true};
  return schedule::Finish{};
}

void JobSchedule::RequestSave() {
  const bool just_saved = record_.saved == record_.state.step && record_.trains_out == 0;
  if (!just_saved && !at_end()) record_.save_requested = true;
}

bool JobSchedule::interrupted() const {
  return record_.stop_requested && !record_.finished && !record_.out.has_value() &&
         record_.trains_out == 0 && !record_.writing && !SaveDue();
}

LossMeans JobSchedule::MeansOf(const std::vector<double>& sums, uint64_t samples) const {
  LossMeans means;
  if (samples == 0) return means;
  for (size_t l = 0; l < sums.size(); ++l) {
    means.push_back({config_.losses[l], sums[l] / static_cast<double>(samples)});
  }
  return means;
}

// The factors are floats, so further digits would be noise.
double JobSchedule::learning_rate() const { return Rounded(config_.learning_rate * lr_scale(), 7); }

LossMeans JobSchedule::train() const {
  LossMeans means = MeansOf(record_.state.epoch_loss_sums, record_.state.epoch_samples);
  for (LossMean& of : means) of.mean = Rounded(of.mean, 9);
  return means;
}

std::optional<double> JobSchedule::FirstLossOf(std::string_view loss) const {
  for (size_t l = 0; l < record_.state.first_losses.size(); ++l) {
    if (config_.losses[l] == loss) return record_.state.first_losses[l];
  }
  return std::nullopt;
}

void JobSchedule::OnTrained(Step end_step, const Trained& trained) {
  DT_CHECK(record_.trains_out > 0 && end_step <= record_.issued);
  DT_CHECK(trained.loss_sums.size() == config_.losses.size());
  if (--record_.trains_out == 0) record_.recalled = false;
  if (record_.state.step == 0) record_.state.first_losses = trained.first_losses;
  const uint64_t round = config_.has_windows() ? EvaluateEvery() : config_.steps_per_epoch();
  if (record_.state.step % round == 0) {
    record_.state.epoch_loss_sums.assign(config_.losses.size(), 0);
    record_.state.epoch_samples = 0;
  }
  const double steps = static_cast<double>(end_step - record_.state.step);
  record_.state.step = end_step;
  record_.state.samples += trained.samples;
  if (trained.offsets.has_value()) record_.state.offsets = trained.offsets;
  record_.state.train_seconds += trained.passed.value_or(trained.seconds);
  for (size_t l = 0; l < trained.loss_sums.size(); ++l) {
    record_.state.epoch_loss_sums[l] += trained.loss_sums[l];
  }
  record_.state.epoch_samples += trained.samples;
  if (trained.samples > 0) {
    AddToCurve({end_step, record_.state.train_seconds, trained.samples, learning_rate(),
                MeansOf(trained.loss_sums, trained.samples)},
               record_.state.curve);
  }
  if (trained.seconds <= 0) return;
  record_.step_seconds = trained.seconds / steps;
  const double fitting = std::clamp(kOrderSeconds / record_.step_seconds, 1.0,
                                    4.0 * static_cast<double>(record_.chunk));
  record_.chunk = std::min(kOrderStepsMax, static_cast<uint64_t>(fitting));
}

void JobSchedule::OnEvaluated(const LossMetrics& metrics) {
  DT_CHECK(record_.out.has_value() && std::holds_alternative<schedule::Evaluate>(*record_.out));
  const bool test = std::get<schedule::Evaluate>(*record_.out).test;
  record_.out.reset();
  if (test) {
    record_.test = metrics;
    return;
  }
  const uint64_t per_epoch = config_.steps_per_epoch();
  const uint64_t epoch = (record_.state.step + per_epoch - 1) / per_epoch;
  record_.state.evaluated = record_.state.step;
  record_.state.history.push_back(
      {epoch, record_.state.step, lr_scale(), learning_rate(), metrics, train()});
  if (stream_ && record_.state.history.size() > kEvaluationsKept) {
    record_.state.history.erase(record_.state.history.begin());
  }
  decisions_.OnEvaluation(metrics, record_.state.step, epoch, record_.state.decisions);
  // A job that was stopped here saved before it evaluated. It must save again to keep this as the
  // best.
  if (BestHere()) record_.saved.reset();
}

void JobSchedule::OnCut() {
  OnDone();
  record_.writing = true;
  if (BestHere()) record_.best_in_writing = BestOf(record_.state.decisions);
}

void JobSchedule::OnWritten() {
  record_.writing = false;
  if (record_.best_in_writing.has_value()) {
    record_.best_kept = std::exchange(record_.best_in_writing, std::nullopt);
  }
}

bool JobSchedule::OnAbandoned() {
  record_.writing = false;
  const bool here = record_.saved == record_.state.step;
  if (here) record_.saved.reset();
  const std::optional<BestEvaluation> best = std::exchange(record_.best_in_writing, std::nullopt);
  DecisionState& decisions = record_.state.decisions;
  if ((here && record_.trains_out == 0) || !best.has_value() || best->step != decisions.best_step)
    return true;
  SetBest(record_.best_kept, decisions);
  // This step may be better than what is kept, and is about to be saved.
  const ScheduleState& state = record_.state;
  if (state.evaluated == state.step && record_.trains_out == 0) {
    const JobResult::Evaluation& last = state.history.back();
    decisions_.ConsiderBest({last.step, last.epoch, last.valid}, decisions);
  }
  return false;
}

void JobSchedule::OnDone() {
  DT_CHECK(record_.out.has_value());
  if (std::holds_alternative<schedule::Save>(*record_.out)) {
    record_.saved = record_.state.step;
    record_.save_requested = false;
  }
  if (std::holds_alternative<schedule::Restore>(*record_.out)) record_.restored = true;
  if (std::holds_alternative<schedule::Finish>(*record_.out)) record_.finished = true;
  record_.out.reset();
}

}  // namespace dt::scheduler
