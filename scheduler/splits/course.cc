#include "scheduler/splits/course.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "scheduler/splits/loss_curve.h"

namespace dt::scheduler {
namespace {

constexpr uint32_t kTrainsAhead = 2;
constexpr double kOrderSeconds = 0.4;
constexpr uint64_t kOrderStepsMax = 4096;

Step NextMultiple(Step above, uint64_t of) { return (above / of + 1) * of; }

double Rounded(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double scale = std::pow(10.0, digits - 1 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

}  // namespace

Course::Course(const CourseConfig& config, CourseState state)
    : config_(config), decisions_(config.plateau, config.early_stop), state_(std::move(state)) {
  // A manifest is only as good as its writer.
  const size_t losses = config_.losses.size();
  state_.epoch_loss_sums.resize(losses);
  if (state_.first_losses.size() != losses) state_.first_losses.clear();
  std::erase_if(state_.curve, [&](const auto& point) { return point.losses.size() != losses; });
  issued_ = state_.step;
  if (state_.step > 0) saved_ = state_.step;
}

std::optional<course::Order> Course::Next() {
  if (out_.has_value() || finished_) return std::nullopt;
  if (trains_out_ > 0) return NextTrain();
  std::optional<course::Order> order = NextAtBoundary();
  if (!order.has_value()) return NextTrain();
  if (writing_ && !std::holds_alternative<course::Evaluate>(*order)) return std::nullopt;
  return out_ = order;
}

// The first step after `from` at which something other than training may be due.
Step Course::Boundary(Step from) const {
  Step boundary = std::min(NextMultiple(from, config_.steps_per_epoch()), config_.steps());
  if (config_.save_every > 0) {
    boundary = std::min(boundary, NextMultiple(from, config_.save_every));
  }
  if (config_.evaluate_every > 0) {
    boundary = std::min(boundary, NextMultiple(from, config_.evaluate_every));
  }
  return boundary;
}

std::optional<course::Order> Course::NextTrain() {
  if (stop_requested_ || at_end() || trains_out_ >= kTrainsAhead) return std::nullopt;
  if (issued_ == Boundary(state_.step)) return std::nullopt;  // Handed out up to it.
  if (save_requested_ && trains_out_ > 0) return std::nullopt;
  const Step end = std::min(Boundary(issued_), issued_ + chunk_);
  const uint64_t per_epoch = config_.steps_per_epoch();
  const uint64_t epoch = issued_ / per_epoch;
  course::Train train{epoch, epoch * per_epoch, issued_, end, state_.decisions.rate_scale};
  issued_ = end;
  ++trains_out_;
  return train;
}

float Course::rate_scale() const {
  const Step last = state_.step > 0 ? state_.step - 1 : 0;
  return static_cast<float>(state_.decisions.rate_scale *
                            config_.schedule.ScaleAt(last, config_.steps()));
}

bool Course::EvaluationDue() const {
  if (config_.valid_rows == 0 || state_.step == 0 || state_.evaluated == state_.step) return false;
  if (state_.step == config_.steps()) return true;
  const uint64_t every =
      config_.evaluate_every > 0 ? config_.evaluate_every : config_.steps_per_epoch();
  return state_.step % every == 0;
}

bool Course::SaveDue() const {
  if (state_.step == 0 || saved_ == state_.step) return false;
  if (save_requested_ && !stop_requested_) return true;
  if (config_.save_every > 0 && (stop_requested_ || state_.step % config_.save_every == 0)) {
    return true;
  }
  return !stop_requested_ && (at_end() || BestHere());
}

bool Course::RestoreDue() const {
  const std::optional<Step>& best = state_.decisions.best_step;
  return !restored_ && keeps_best() && best.has_value() && best != state_.step;
}

std::optional<course::Order> Course::NextAtBoundary() {
  if (!stop_requested_ && EvaluationDue()) return course::Evaluate{state_.step, false};
  if (SaveDue()) return course::Save{state_.step, BestHere()};
  if (stop_requested_ || !at_end()) return std::nullopt;
  const Step position =
      keeps_best() ? state_.decisions.best_step.value_or(state_.step) : state_.step;
  if (RestoreDue()) return course::Restore{position};
  if (config_.test_rows > 0 && !test_.has_value()) return course::Evaluate{position, true};
  return course::Finish{};
}

void Course::RequestSave() {
  const bool just_saved = saved_ == state_.step && trains_out_ == 0;
  if (!just_saved && !at_end()) save_requested_ = true;
}

bool Course::interrupted() const {
  return stop_requested_ && !finished_ && !out_.has_value() && trains_out_ == 0 && !writing_ &&
         !SaveDue();
}

LossMeans Course::MeansOf(const std::vector<double>& sums, uint64_t samples) const {
  LossMeans means;
  if (samples == 0) return means;
  for (size_t l = 0; l < sums.size(); ++l) {
    means.push_back({config_.losses[l], sums[l] / static_cast<double>(samples)});
  }
  return means;
}

// The factors are floats: further digits would be those of their nearest doubles.
double Course::learning_rate() const { return Rounded(config_.learning_rate * rate_scale(), 7); }

LossMeans Course::train() const {
  LossMeans means = MeansOf(state_.epoch_loss_sums, state_.epoch_samples);
  for (LossMean& of : means) of.mean = Rounded(of.mean, 9);
  return means;
}

std::optional<double> Course::FirstLossOf(std::string_view loss) const {
  for (size_t l = 0; l < state_.first_losses.size(); ++l) {
    if (config_.losses[l] == loss) return state_.first_losses[l];
  }
  return std::nullopt;
}

void Course::OnTrained(Step end_step, const Trained& trained) {
  DT_CHECK(trains_out_ > 0 && end_step <= issued_);
  DT_CHECK(trained.loss_sums.size() == config_.losses.size());
  --trains_out_;
  if (state_.step == 0) state_.first_losses = trained.first_losses;
  if (state_.step % config_.steps_per_epoch() == 0) {
    state_.epoch_loss_sums.assign(config_.losses.size(), 0);
    state_.epoch_samples = 0;
  }
  const double steps = static_cast<double>(end_step - state_.step);
  state_.step = end_step;
  state_.samples += trained.samples;
  state_.train_seconds += trained.seconds;
  for (size_t l = 0; l < trained.loss_sums.size(); ++l) {
    state_.epoch_loss_sums[l] += trained.loss_sums[l];
  }
  state_.epoch_samples += trained.samples;
  if (trained.samples > 0) {
    AddToCurve({end_step, state_.train_seconds, trained.samples, learning_rate(),
                MeansOf(trained.loss_sums, trained.samples)},
               state_.curve);
  }
  if (trained.seconds <= 0) return;
  const double fitting =
      std::clamp(kOrderSeconds * steps / trained.seconds, 1.0, 4.0 * static_cast<double>(chunk_));
  chunk_ = std::min(kOrderStepsMax, static_cast<uint64_t>(fitting));
}

void Course::OnEvaluated(const LossMetrics& metrics) {
  DT_CHECK(out_.has_value() && std::holds_alternative<course::Evaluate>(*out_));
  const bool test = std::get<course::Evaluate>(*out_).test;
  out_.reset();
  if (test) {
    test_ = metrics;
    return;
  }
  const uint64_t per_epoch = config_.steps_per_epoch();
  const uint64_t epoch = (state_.step + per_epoch - 1) / per_epoch;
  state_.evaluated = state_.step;
  state_.history.push_back({epoch, state_.step, rate_scale(), learning_rate(), metrics, train()});
  decisions_.OnEvaluation(metrics, state_.step, epoch, state_.decisions);
  // A job that was stopped here had saved before it evaluated: saved again, it is kept as the best.
  if (BestHere()) saved_.reset();
}

void Course::OnCut() {
  OnDone();
  writing_ = true;
}

void Course::OnAbandoned() {
  writing_ = false;
  if (saved_ == state_.step) saved_.reset();
}

void Course::OnDone() {
  DT_CHECK(out_.has_value());
  if (std::holds_alternative<course::Save>(*out_)) {
    saved_ = state_.step;
    save_requested_ = false;
  }
  if (std::holds_alternative<course::Restore>(*out_)) restored_ = true;
  if (std::holds_alternative<course::Finish>(*out_)) finished_ = true;
  out_.reset();
}

}  // namespace dt::scheduler
