#include "scheduler/job/progress.h"

#include <algorithm>

namespace dt::scheduler {

Step StepsDone(const JobSchedule& schedule, Step reported) {
  const Step done = schedule.state().step;
  // At the end of an epoch its losses are shown until the next epoch has some, so no later step is.
  if (done > 0 && done % schedule.config().steps_per_epoch() == 0) return done;
  return std::min(schedule.config().steps(), std::max(done, reported));
}

Progress ProgressOf(const JobSchedule& schedule, Step reported, double steps_per_second) {
  const ScheduleConfig& config = schedule.config();
  Progress progress;
  progress.steps = config.steps();
  progress.step = StepsDone(schedule, reported);
  progress.steps_per_epoch = config.steps_per_epoch();
  progress.epochs = (config.steps() + progress.steps_per_epoch - 1) / progress.steps_per_epoch;
  const Step last = progress.step > 0 ? progress.step - 1 : 0;
  progress.epoch = last / progress.steps_per_epoch;
  progress.step_in_epoch = progress.step - progress.epoch * progress.steps_per_epoch;
  progress.train = schedule.train();
  progress.learning_rate = schedule.learning_rate();
  const auto& history = schedule.state().history;
  if (!history.empty()) progress.valid = history.back().valid;
  if (steps_per_second > 0) {
    progress.samples_per_second = steps_per_second * config.batch_size;
    progress.seconds_left = static_cast<double>(progress.steps - progress.step) / steps_per_second;
  }
  return progress;
}

void Pace::Update(TimePoint now, Step step) {
  const double seconds = SecondsBetween(at_, now);
  if (seconds < 1 || step <= step_) return;
  steps_per_second_ = static_cast<double>(step - step_) / seconds;
  at_ = now;
  step_ = step;
}

}  // namespace dt::scheduler
