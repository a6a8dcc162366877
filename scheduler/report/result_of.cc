#include "scheduler/report/result_of.h"

#include "common/base/written_paths.h"

namespace dt::scheduler {
namespace {

// A member with its resource use: at the end, or by its last heartbeat.
JobResult::RoleReport RoleOf(const Member& member, const Job& job) {
  ProcessStats stats = job.membership().presence(member.id).report.stats;
  if (job.totals().has_value() && job.totals()->stats.contains(member.id)) {
    stats = job.totals()->stats.at(member.id);
  }
  return {std::string(NameOf(member.role())), member.id.value(), member.join.pid,
          JobResult::Usage{stats.cpu_seconds, stats.peak_rss_bytes, stats.bytes_sent,
                           stats.bytes_received}};
}

void AddTraining(const TrainingRun& training, bool finished, JobResult& to) {
  const JobSchedule& schedule = training.schedule();
  const ScheduleState& state = schedule.state();
  const uint64_t per_epoch = schedule.config().steps_per_epoch();
  to.had_finished = training.record().had_finished;
  to.plan = training.plan_check();
  to.samples = state.samples;
  to.steps = state.step;
  to.epochs = (state.step + per_epoch - 1) / per_epoch;
  to.seconds = state.train_seconds;
  to.train = schedule.train();
  to.history = state.history;
  to.curve = state.curve;
  to.test = schedule.test();
  if (!state.history.empty()) to.valid = state.history.back().valid;
  const DecisionState& decisions = state.decisions;
  if (!decisions.best.has_value()) return;
  to.best = {decisions.best_epoch, *decisions.best};
  if (finished) to.valid = decisions.best;  // The best evaluation's parameters were restored.
}

}  // namespace

JobResult ResultOf(const Job& job, TimePoint now) {
  JobResult result;
  result.job = job.config().job;
  result.status = job.outcome();
  result.seconds_total = job.SecondsAt(now);
  result.events = job.record().events;
  result.checkpoint = WithWrittenPaths(job.record().last_checkpoint);
  for (const Member& member : job.membership().members()) {
    result.roles.push_back(RoleOf(member, job));
  }
  if (job.totals().has_value()) {
    result.tables = job.totals()->tables;
    result.dense_checksum = job.totals()->dense_checksum;
  }
  if (const EvaluationRun* const run = job.evaluation(); run != nullptr) {
    (run->on_test_data() ? result.test : result.valid) = run->metrics();
  }
  if (job.training() != nullptr) {
    AddTraining(*job.training(), job.totals().has_value(), result);
  }
  return result;
}

}  // namespace dt::scheduler
