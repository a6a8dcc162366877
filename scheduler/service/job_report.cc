// What a job says of itself: how far it is, and how it ended.
#include <algorithm>

#include "common/base/written_paths.h"
#include "scheduler/service/job_state.h"

namespace dt::scheduler {

Progress JobState::ProgressAt(TimePoint now) {
  Progress progress;
  if (!course_.has_value()) return progress;
  const CourseConfig& config = course_->config();
  const Member* first = membership_.OfRole(Role::kWorker).front();
  progress.steps = config.steps();
  const Step done = course_->state().step;
  progress.step = std::min(progress.steps, std::max(done, first->report.step));
  // At the end of an epoch the losses are that epoch's until the next one has some.
  if (done > 0 && done % config.steps_per_epoch() == 0) progress.step = done;
  progress.steps_per_epoch = config.steps_per_epoch();
  progress.epochs = (config.steps() + progress.steps_per_epoch - 1) / progress.steps_per_epoch;
  const Step last = progress.step > 0 ? progress.step - 1 : 0;
  progress.epoch = last / progress.steps_per_epoch;
  progress.step_in_epoch = progress.step - progress.epoch * progress.steps_per_epoch;
  progress.train = course_->train();
  progress.learning_rate = course_->learning_rate();
  if (!course_->state().history.empty()) progress.valid = course_->state().history.back().valid;
  const double seconds = SecondsBetween(pace_.at, now);
  if (seconds >= 1 && progress.step > pace_.step) {
    pace_ = {now, progress.step, static_cast<double>(progress.step - pace_.step) / seconds};
  }
  if (pace_.steps_per_second > 0) {
    progress.samples_per_second = pace_.steps_per_second * options_.job.train.batch_size;
    progress.seconds_left =
        static_cast<double>(progress.steps - progress.step) / pace_.steps_per_second;
  }
  return progress;
}

std::string JobState::ResumeHint() const {
  if (last_checkpoint_.empty()) return "";
  return fmt::format("--resume auto goes on from {}", last_checkpoint_);
}

Status JobState::Stopped() const {
  if (!course_.has_value()) return Cancelled("the job was stopped before its first step");
  Status status = Cancelled("the job was stopped at step {}", course_->state().step);
  return WithHint(std::move(status), last_checkpoint_.empty()
                                         ? "no checkpoint was made; checkpoint.every makes some"
                                         : ResumeHint());
}

JobResult JobState::ResultAt(TimePoint now) const {
  JobResult result;
  result.job = options_.job.job;
  result.status = outcome_;
  result.seconds_total = SecondsBetween(begin_, now);
  result.events = events_;
  result.tables = tables_;
  result.dense_checksum = dense_checksum_;
  result.checkpoint = WithWrittenPaths(last_checkpoint_);
  result.had_finished = had_finished_;
  for (const Member& member : membership_.members()) {
    const auto final = final_stats_.find(member.id);
    const ProcessStats& stats = final != final_stats_.end() ? final->second : member.report.stats;
    result.roles.push_back({std::string(NameOf(member.role())), member.id.value(), member.join.pid,
                            JobResult::Usage{stats.cpu_seconds, stats.peak_rss_bytes,
                                             stats.bytes_sent, stats.bytes_received}});
  }
  if (evaluated_.has_value()) {
    (data_.begin()->second.test_rows > 0 ? result.test : result.valid) = evaluated_;
  }
  if (!course_.has_value()) return result;
  const CourseState& state = course_->state();
  result.samples = state.samples;
  result.steps = state.step;
  const uint64_t per_epoch = course_->config().steps_per_epoch();
  result.epochs = (state.step + per_epoch - 1) / per_epoch;
  result.seconds = state.train_seconds;
  result.train = course_->train();
  result.history = state.history;
  result.curve = state.curve;
  result.test = course_->test();
  if (!state.history.empty()) result.valid = state.history.back().valid;
  const DecisionState& decisions = state.decisions;
  if (decisions.best.has_value()) result.best = {decisions.best_epoch, *decisions.best};
  if (finished_ && decisions.best.has_value()) result.valid = decisions.best;  // It was restored.
  return result;
}

}  // namespace dt::scheduler
