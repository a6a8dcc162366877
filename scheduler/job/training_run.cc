#include "scheduler/job/training_run.h"

#include <algorithm>
#include <chrono>

#include "common/base/log.h"
#include "scheduler/results/merge_results.h"
#include "scheduler/state/stripes.h"

namespace dt::scheduler {
namespace {

std::vector<std::string> NamesOf(const std::vector<LossConfig>& losses) {
  std::vector<std::string> names;
  for (const LossConfig& loss : losses) names.push_back(loss.name);
  return names;
}

// Workers that ask the scheduler for each part of an order wait for it anyway.
double SecondsAhead(const JobConfig& job) {
  if (job.deals_on_request()) return 0;
  return std::chrono::duration<double>(job.cluster.scheduler_outage).count();
}

std::optional<StreamLimits> StreamOf(const JobConfig& job) {
  if (!job.data.stream.has_value()) return std::nullopt;
  return StreamLimits{job.train.batch_size, job.data.stream->wait, job.train.forever};
}

ScheduleConfig ScheduleConfigOf(const JobConfig& job, const DataReadyMessage& data) {
  return {.train_rows = data.train_rows,
          .valid_rows = data.valid_rows,
          .test_rows = data.test_rows,
          .stripe_rows = StripeRowsOf(data),
          .batch_size = job.train.batch_size,
          .epochs = job.train.epochs,
          .max_steps = job.train.max_steps,
          .losses = NamesOf(job.model.losses),
          .learning_rate = double{job.optimizer.spec.lr},
          .save_every = job.checkpoint.every_steps,
          .evaluate_every = job.train.evaluate_every,
          .plateau = job.optimizer.plateau,
          .early_stop = job.train.early_stop,
          .schedule = job.optimizer.schedule,
          .seconds_ahead = SecondsAhead(job),
          .stream = StreamOf(job)};
}

}  // namespace

Result<TrainingRecord> TrainingRun::Begin(const JobOptions& options, const JobRecord& job) {
  ScheduleState state;
  if (options.resumed()) state = options.resumed()->manifest.schedule;
  const ScheduleConfig config = ScheduleConfigOf(options.job, job.data);
  TrainingRecord record{.schedule = ScheduleFrom(config, std::move(state))};
  if (const auto& stream = options.job.data.stream) {
    const ScheduleState& at = record.schedule.state;
    DT_TRY(record.schedule.stream,
           Stream::Begin(job.data.partitions, at.offsets.value_or(job.stream_begins), *stream));
  }
  record.loaded = !options.checkpoint.has_value();
  // Its own checkpoint after the first order, so that it needs the other job's no more.
  record.schedule.save_requested = options.begins();
  record.had_finished = !record.loaded && JobSchedule(config, record.schedule).at_end();
  record.first_step = record.schedule.state.step;
  record.trained_before = record.schedule.state.train_seconds;
  return record;
}

TrainingRun::TrainingRun(JobContext& job, TrainingRecord& record, TimePoint now)
    : job_(job),
      record_(record),
      schedule_(ScheduleConfigOf(job.options.job, job.record.data), record.schedule),
      work_(record.work),
      checkpoint_(record.checkpoint),
      first_order_(job.record.orders.next_number),
      pace_(now, record.schedule.state.step),
      saved_or_begun_(now) {}

// ------------------------------------------------------------ orders out

Result<RunState> TrainingRun::HandOut(TimePoint now) {
  if (!record_.loaded) {
    if (job_.orders.empty()) DT_TRY_STATUS(IssueLoad());
    return RunState::kGoing;
  }
  DT_TRY_STATUS(SettleCheckpoint(now));  // A worker that wrote may be gone.
  SaveByTime(now);
  RecallOrders();
  for (;;) {
    if (!schedule_.training()) trained_until_ = now;
    const std::optional<schedule::Order> next = schedule_.Next(now);
    if (!next.has_value()) break;
    DT_TRY(Order what, OrderOf(*next));
    const auto* const train = std::get_if<schedule::Train>(&*next);
    const bool saves_nothing =
        train != nullptr || std::holds_alternative<schedule::Evaluate>(*next);
    const uint64_t number = Issue(
        job_, std::move(what), saves_nothing ? Audience::kWorkers : Audience::kWorkersAndServers);
    if (train != nullptr) {
      const uint64_t steps = train->end_step - train->first_step;
      work_.Open(number, steps * job_.record.views.workers.size());
    }
    if (const auto* const save = std::get_if<schedule::Save>(&*next)) {
      checkpoint_.Begin(number, save->step, save->best);
    }
  }
  if (schedule_.finished()) return RunState::kFinished;
  return schedule_.interrupted() ? RunState::kInterrupted : RunState::kGoing;
}

void TrainingRun::SaveByTime(TimePoint now) {
  const Duration interval = job_.options.job.checkpoint.interval;
  if (interval <= Duration() || now - saved_or_begun_ < interval || saving()) return;
  saved_or_begun_ = now;
  schedule_.RequestSave();
}

void TrainingRun::OnStreamReport(const StreamReportMessage& report) {
  if (job_.options.job.data.stream) schedule_.OnStreamReport(report);
}

// The processes that are asked are all workers.
void TrainingRun::RecallOrders() {
  const std::optional<size_t> keep = schedule_.TakeRecall();
  if (!keep.has_value()) return;
  job_.orders.Recall(*keep);
  for (const ProcessId id : IdsOf(job_, Audience::kWorkers)) {
    job_.out.Send(*job_.members.Find(id), *job_.orders.RecallTo(id));
  }
}

Status TrainingRun::OnRecalled(const Member& from, const RecalledMessage& answer) {
  Result<std::optional<OrderTracker::Recalled>> answered = job_.orders.OnRecalled(from.id, answer);
  if (!answered.ok()) return Prefixed(answered.status(), from.Name());
  if (!answered->has_value()) return OkStatus();
  EndRecall(**answered);
  return OkStatus();
}

void TrainingRun::EndRecall(const OrderTracker::Recalled& recalled) {
  const auto& [cancelled, again] = recalled;
  for (const OrderMessage& order : cancelled) work_.Close(order.number);
  if (!cancelled.empty()) {
    const auto& first = std::get<TrainOrder>(cancelled.front().what);
    schedule_.OnRecalled(first.first_step, cancelled.size(), first.cut);
  }
  for (const auto& [id, order] : again) job_.out.Send(*job_.members.Find(id), order);
}

void TrainingRun::OnWorkerLost(ProcessId worker) {
  checkpoint_.OnWorkerGone(worker);
  work_.GiveBack(worker);
  const auto recalled = job_.orders.RemoveWorker(worker, asynchronous());
  if (recalled.has_value()) EndRecall(*recalled);
}

SplitMessage TrainingRun::NextParts(ProcessId worker, const SplitRequestMessage& request) {
  return work_.Next(worker, request, static_cast<uint32_t>(job_.record.views.workers.size()));
}

Status TrainingRun::IssueLoad() {
  const JobOptions::Checkpoint& from = *job_.options.checkpoint;
  const Step step = from.begins ? 0 : from.manifest.schedule.step;
  DT_TRY(Order load, LoadInNextGeneration(job_, step, from.folder));
  if (from.begins) {
    auto& order = std::get<LoadOrder>(load);
    order.begins = true;
    order.taken = job_.record.plan.taken;
  }
  Issue(job_, std::move(load), Audience::kWorkersAndServers);
  return OkStatus();
}

Result<Order> TrainingRun::OrderOf(const schedule::Order& next) {
  if (const auto* train = std::get_if<schedule::Train>(&next)) {
    return Order(TrainOrder{.epoch = train->epoch,
                            .epoch_first_step = train->epoch_first_step,
                            .first_step = train->first_step,
                            .end_step = train->end_step,
                            .lr_scale = train->lr_scale,
                            .slice_owner = SliceOwners(job_),
                            .cut = train->cut});
  }
  if (const auto* evaluate = std::get_if<schedule::Evaluate>(&next)) {
    return Order(EvaluateOrder{
        evaluate->step, evaluate->test ? SplitKind::kTest : SplitKind::kValid, evaluate->cut});
  }
  if (const auto* save = std::get_if<schedule::Save>(&next)) {
    DT_TRY(std::string name, job_.environment.BeginCheckpoint(save->step));
    return Order(SaveOrder{save->step, std::move(name)});
  }
  if (const auto* restore = std::get_if<schedule::Restore>(&next)) {
    DT_TRY(std::string folder, job_.environment.FindCheckpoint(restore->step));
    return LoadInNextGeneration(job_, restore->step, std::move(folder));
  }
  return Order(FinishOrder{});
}

// ------------------------------------------------------------ results back

Status TrainingRun::OnCompleted(TimePoint now, OrderTracker::Completed done) {
  const Order& what = done.order.what;
  if (std::holds_alternative<TrainOrder>(what)) return OnTrained(now, std::move(done));
  if (std::holds_alternative<EvaluateOrder>(what)) return OnEvaluated(now, std::move(done));
  if (std::holds_alternative<SaveOrder>(what)) {
    checkpoint_.Cut(ManifestNow(), done.TakeOutcomes<SaveDone>());
    schedule_.OnCut();
    return SettleCheckpoint(now);
  }
  if (const auto* load = std::get_if<LoadOrder>(&what)) {
    OnLoaded(now, *load);
  } else {
    schedule_.OnDone();
  }
  return OkStatus();
}

Status TrainingRun::OnTrained(TimePoint now, OrderTracker::Completed done) {
  const TrainOrder order = std::get<TrainOrder>(done.order.what);
  const TrainingKind kind{job_.options.job.model.losses.size(), asynchronous()};
  const std::map<ProcessId, TrainDone> reports = done.TakeOutcomes<TrainDone>();
  const auto& [first_id, first] = *reports.begin();
  for (const auto& [id, its] : reports) {
    const bool agrees = kind.asynchronous || its.samples == first.samples;
    if (agrees && Fits(its, order, kind.losses)) continue;
    return Internal("{} and {} disagree on what steps {} to {} were",
                    job_.members.Find(first_id)->Name(), job_.members.Find(id)->Name(),
                    order.first_step, order.end_step);
  }
  Trained all = MergeTraining(reports, kind);
  // Asynchronous workers overlap: one begins an order while another still does the one before.
  // Those of an earlier scheduler's orders may have been done long before this one hears of it.
  const double passed = SecondsBetween(std::exchange(trained_until_, now), now);
  if (kind.asynchronous && done.order.number >= first_order_) all.passed = passed;
  work_.Close(done.order.number);
  if (!order.cut.empty()) all.offsets = order.cut.End();
  schedule_.OnTrained(order.end_step, all);
  last_step_at_ = now;
  for (const LossMean& of : schedule_.MeansOf(all.loss_sums, all.samples)) {
    WarnIfDiverged(now, of, "training");
  }
  return OkStatus();
}

Status TrainingRun::OnEvaluated(TimePoint now, OrderTracker::Completed done) {
  const EvaluateOrder order = std::get<EvaluateOrder>(done.order.what);
  DT_TRY(const LossMetrics metrics,
         MergeEvaluation(done.TakeOutcomes<EvaluateDone>(), job_.options.job.model.losses,
                         job_.options.job.data.by_slices || !order.cut.empty()));
  LogEvaluation(order, metrics);
  const float before = schedule_.state().decisions.rate_scale;
  schedule_.OnEvaluated(metrics);
  const bool test = order.split == SplitKind::kTest;
  for (const Metrics& of : metrics) {
    if (!of.logloss.has_value()) continue;
    WarnIfDiverged(now, {of.loss, *of.logloss}, test ? "test" : "validation");
  }
  const DecisionState& decided = schedule_.state().decisions;
  const auto step = static_cast<int64_t>(order.step);
  if (decided.rate_scale != before) {
    job_.out.AddEvent(now, "rate_changed",
                      {{"step", step}, {"rate_scale", double{decided.rate_scale}}});
  }
  if (decided.stopped && !test) job_.out.AddEvent(now, "early_stop", {{"step", step}});
  return OkStatus();
}

void TrainingRun::OnLoaded(TimePoint now, const LoadOrder& load) {
  if (!std::exchange(record_.loaded, true)) return NoteResumed(job_, now, load);
  job_.out.AddEvent(now, "restored", {{"step", static_cast<int64_t>(load.step)}});
  LogInfo("job.restored", {{"step", load.step}, {"folder", load.folder}});
  schedule_.OnDone();
}

// A loss far above its first value suggests that the learning rate is too high. Each loss is warned
// about once.
void TrainingRun::WarnIfDiverged(TimePoint now, const LossMean& mean, std::string_view data) {
  const std::optional<double> first = schedule_.FirstLossOf(mean.loss);
  if (!first.has_value() || !HasDiverged(mean.mean, *first)) return;
  if (!diverged_.insert(mean.loss).second) return;
  const Step step = schedule_.state().step;
  std::string why = fmt::format(
      "loss {} has diverged: {:.5g} on {} data at step {}, {:.5g} at the "
      "job's first step; lower the learning rate",
      mean.loss, mean.mean, data, step, *first);
  LogWarn("job.loss_diverged", {{"why", why}});
  job_.out.AddEvent(now, "loss_diverged",
                    {{"loss", mean.loss},
                     {"step", static_cast<int64_t>(step)},
                     {"mean", mean.mean},
                     {"first", *first},
                     {"why", std::move(why)}});
}

// ------------------------------------------------------------ checkpoints

// The manifest still lacks its files.
Manifest TrainingRun::ManifestNow() const {
  const JobConfig& job = job_.options.job;
  Manifest manifest{.job = job.job,
                    .schedule = schedule_.state(),
                    .train_rows = job_.record.data.train_rows,
                    .slices = job_.options.slices(),
                    .steps_before = job_.record.start.steps_before,
                    .resume_fingerprint = job.resume_fingerprint,
                    .resume_text = job.resume_text,
                    .model = job_.record.plan.model,
                    .written = WallTimeText(),
                    .order = fmt::format("{:016x}-{}", job_.record.run, record_.checkpoint.order)};
  for (const TableConfig& table : job.model.tables) manifest.tables.push_back(table.name);
  return manifest;
}

Status TrainingRun::OnRowsWritten(TimePoint now, const Member& from,
                                  const RowsWrittenMessage& written) {
  checkpoint_.OnRowsWritten(from.id, written);
  return SettleCheckpoint(now);
}

Status TrainingRun::OnReplaced(TimePoint now, const Member& server) {
  const std::vector<OrderMessage> out = job_.orders.OutTo(server.id);
  const bool answered = std::ranges::none_of(
      out, [](const OrderMessage& order) { return std::holds_alternative<SaveOrder>(order.what); });
  checkpoint_.OnLost(server.id, answered);
  return SettleCheckpoint(now);
}

Status TrainingRun::OnRemoved(TimePoint now, ProcessId server, bool gone) {
  checkpoint_.OnRemoved(server, gone);
  return SettleCheckpoint(now);
}

Status TrainingRun::SettleCheckpoint(TimePoint now) {
  const std::optional<CheckpointCommit::Settled> settled = checkpoint_.TakeSettled();
  if (!settled.has_value()) return OkStatus();
  if (!settled->abandoned) return CompleteCheckpoint(now, *settled);
  const Step step = settled->manifest.schedule.step;
  job_.out.AddEvent(now, "checkpoint_abandoned", {{"step", static_cast<int64_t>(step)}});
  LogWarn("job.checkpoint_abandoned",
          {{"step", step}, {"why", "a process that wrote it was lost"}});
  if (!schedule_.OnAbandoned()) {
    job_.out.AddEvent(now, "best_lost", {{"step", static_cast<int64_t>(step)}});
    LogWarn("job.best_lost", {{"step", step}, {"why", "training has gone on meanwhile"}});
  }
  schedule_.RequestSave();
  return OkStatus();
}

Status TrainingRun::CompleteCheckpoint(TimePoint now, const CheckpointCommit::Settled& settled) {
  std::string& last = job_.record.last_checkpoint;
  Result<std::string> folder = job_.environment.CommitCheckpoint(settled.manifest, settled.best);
  if (!folder.ok()) {
    if (last.empty()) return folder.status();
    return WithHint(folder.status(), fmt::format("the last good checkpoint is {}", last));
  }
  const Step step = settled.manifest.schedule.step;
  last = *folder;
  last_checkpoint_at_ = now;
  job_.record.returns.in_a_row = 0;
  job_.out.AddEvent(now, "checkpoint", {{"step", static_cast<int64_t>(step)}, {"folder", last}});
  LogInfo("job.checkpoint", {{"step", step}, {"folder", last}});
  schedule_.OnWritten();
  if (job_.options.job.checkpoint.durability != Durability::kLog) return OkStatus();
  record_.committed = CheckpointCommittedMessage{job_.record.generation, step, last};
  committed_at_ = now;
  for (const Member* server : job_.members.OfRole(Role::kServer)) {
    job_.out.Send(*server, *record_.committed);
  }
  return OkStatus();
}

void TrainingRun::OnReport(TimePoint now, const Member& from, const HeartbeatMessage& report) {
  if (from.role() != Role::kServer) return;
  if (report.log_bytes <= job_.options.job.checkpoint.log.max_bytes) return;
  // The log is being cut now, or was just cut and heartbeats do not show it yet.
  if (checkpoint_.writing() || now - committed_at_ < job_.options.job.cluster.lease) return;
  schedule_.RequestSave();
}

// ------------------------------------------------------------ for people

Step TrainingRun::ReportedStep() const {
  return job_.members.presence(job_.record.views.workers.front()).report.step;
}

Progress TrainingRun::progress() const {
  return ProgressOf(schedule_, ReportedStep(), pace_.steps_per_second());
}

std::optional<JobResult::PlanCheck> TrainingRun::plan_check() const {
  const ScheduleState& state = schedule_.state();
  if (state.step <= record_.first_step) return std::nullopt;
  const auto steps = static_cast<double>(state.step - record_.first_step);
  return JobResult::PlanCheck{job_.record.plan.step_seconds,
                              (state.train_seconds - record_.trained_before) / steps};
}

}  // namespace dt::scheduler
