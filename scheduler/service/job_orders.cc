// What a running job does: the course's orders out to the processes, their results back.
#include <algorithm>
#include <cmath>

#include "common/base/log.h"
#include "common/base/text.h"
#include "scheduler/service/evaluation.h"
#include "scheduler/service/job_state.h"
#include "scheduler/service/status_of.h"

namespace dt::scheduler {
namespace {

// The outcomes of one kind, by process.
template <class T>
std::map<ProcessId, T> OutcomesOf(OrderBoard::Completed& done) {
  std::map<ProcessId, T> found;
  for (auto& [id, outcome] : done.outcomes) found.emplace(id, std::get<T>(std::move(outcome)));
  return found;
}

bool TellsOf(size_t losses, const TrainDone& done) {
  const auto finite = [](double value) { return std::isfinite(value); };
  return done.loss_sums.size() == losses && std::ranges::all_of(done.loss_sums, finite) &&
         (done.first_losses.empty() || done.first_losses.size() == losses) &&
         std::ranges::all_of(done.first_losses, finite);
}

std::vector<std::string> NamesOf(const std::vector<LossConfig>& losses) {
  std::vector<std::string> names;
  for (const LossConfig& loss : losses) names.push_back(loss.name);
  return names;
}

CourseConfig CourseConfigOf(const JobConfig& job, const DataReadyMessage& data) {
  return {.train_rows = data.train_rows,
          .valid_rows = data.valid_rows,
          .test_rows = data.test_rows,
          .batch_size = job.train.batch_size,
          .epochs = job.train.epochs,
          .max_steps = job.train.max_steps,
          .losses = NamesOf(job.model.losses),
          .learning_rate = double{job.optimizer.spec.lr},
          .save_every = job.checkpoint.every_steps,
          .evaluate_every = job.train.evaluate_every,
          .plateau = job.optimizer.plateau,
          .early_stop = job.train.early_stop,
          .schedule = job.optimizer.schedule};
}

}  // namespace

std::vector<ProcessId> JobState::Ids(bool with_servers) const {
  std::vector<ProcessId> ids;
  for (const Member* worker : membership_.OfRole(Role::kWorker)) ids.push_back(worker->id);
  if (!with_servers) return ids;
  for (const Member* server : membership_.OfRole(Role::kServer)) ids.push_back(server->id);
  return ids;
}

// Evenly, neighbours together.
std::vector<uint32_t> JobState::SliceOwners() const {
  std::vector<uint32_t> owners;
  // Of workers that run apart each has its part of every batch.
  const uint64_t slices =
      options_.job.train.asynchronous() ? options_.job.cluster.workers : slices_;
  for (uint64_t k = 0; k < slices; ++k) {
    owners.push_back(static_cast<uint32_t>(k * options_.job.cluster.workers / slices));
  }
  return owners;
}

void JobState::BeginCourse() {
  begun_ = !options_.checkpoint.has_value();
  if (options_.goal == Goal::kEvaluate) return;
  CourseState state;
  if (options_.checkpoint.has_value()) state = options_.checkpoint->manifest.course;
  pace_.step = state.step;
  course_.emplace(CourseConfigOf(options_.job, data_.begin()->second), std::move(state));
  had_finished_ = !begun_ && course_->at_end();
}

void JobState::Issue(OrderBoard::What what, bool to_servers) {
  const std::vector<ProcessId> to = Ids(to_servers);
  const OrderMessage order = board_.Issue(std::move(what), to);
  if (const auto* train = std::get_if<TrainOrder>(&order.what)) {
    splits_.Open(order.number, train->end_step - train->first_step);
  }
  for (ProcessId id : to) Send(*membership_.Find(id), order);
}

void JobState::HandOut(TimePoint now) {
  if (!begun_) {
    if (!board_.empty()) return;
    generation_ = Generation(generation_.value() + 1);
    const Status kept = surroundings_.KeepGeneration(generation_);
    if (!kept.ok()) return Fail(now, kept);
    const JobOptions::Checkpoint& from = *options_.checkpoint;
    return Issue(LoadOrder{from.manifest.course.step, from.folder, generation_}, true);
  }
  if (options_.goal == Goal::kEvaluate) return HandOutEvaluation(now);
  HandOutTraining(now);
}

void JobState::HandOutEvaluation(TimePoint now) {
  if (!board_.empty()) return;
  if (finished_) return End(now, OkStatus());
  if (!evaluation_issued_) {
    evaluation_issued_ = true;
    const bool test = data_.begin()->second.test_rows > 0;
    return Issue(EvaluateOrder{options_.checkpoint->manifest.course.step,
                               test ? SplitKind::kTest : SplitKind::kValid},
                 false);
  }
  if (!finish_issued_) Issue(FinishOrder{}, true);
  finish_issued_ = true;
}

void JobState::HandOutTraining(TimePoint now) {
  for (;;) {
    if (!course_->training()) trained_until_ = now;
    const std::optional<course::Order> next = course_->Next();
    if (!next.has_value()) break;
    Result<OrderBoard::What> what = OrderOf(*next);
    if (!what.ok()) return Fail(now, what.status());
    const bool train = std::holds_alternative<course::Train>(*next);
    const bool evaluate = std::holds_alternative<course::Evaluate>(*next);
    if (!train) out_ = next;
    Issue(*std::move(what), !train && !evaluate);
  }
  if (course_->finished()) {
    End(now, OkStatus());
  } else if (course_->interrupted()) {
    End(now, Stopped());
  }
}

Result<OrderBoard::What> JobState::OrderOf(const course::Order& order) {
  if (const auto* train = std::get_if<course::Train>(&order)) {
    return OrderBoard::What(TrainOrder{train->epoch, train->epoch_first_step, train->first_step,
                                       train->end_step, train->rate_scale, SliceOwners()});
  }
  if (const auto* evaluate = std::get_if<course::Evaluate>(&order)) {
    return OrderBoard::What(
        EvaluateOrder{evaluate->step, evaluate->test ? SplitKind::kTest : SplitKind::kValid});
  }
  if (const auto* save = std::get_if<course::Save>(&order)) {
    DT_TRY(std::string name, surroundings_.BeginCheckpoint(save->step));
    return OrderBoard::What(SaveOrder{save->step, std::move(name)});
  }
  if (const auto* restore = std::get_if<course::Restore>(&order)) {
    DT_TRY(std::string folder, surroundings_.FindCheckpoint(restore->step));
    generation_ = Generation(generation_.value() + 1);
    DT_TRY_STATUS(surroundings_.KeepGeneration(generation_));
    return OrderBoard::What(LoadOrder{restore->step, std::move(folder), generation_});
  }
  return OrderBoard::What(FinishOrder{});
}

Status JobState::Complete(TimePoint now, OrderBoard::Completed done) {
  if (std::holds_alternative<TrainOrder>(done.order.what)) return CompleteTrain(now, done);
  if (std::holds_alternative<EvaluateOrder>(done.order.what)) {
    return CompleteEvaluate(now, std::move(done));
  }
  if (std::holds_alternative<SaveOrder>(done.order.what)) return CompleteSave(now, done);
  if (std::holds_alternative<FinishOrder>(done.order.what)) return CompleteFinish(done);
  const LoadOrder& load = std::get<LoadOrder>(done.order.what);
  AddEvent(now, begun_ ? "restored" : "resumed", {{"step", static_cast<int64_t>(load.step)}});
  LogInfo(begun_ ? "job.restored" : "job.resumed", {{"step", load.step}, {"folder", load.folder}});
  if (begun_) course_->OnDone();
  if (!begun_) last_checkpoint_ = load.folder;
  begun_ = true;
  return OkStatus();
}

Status JobState::CompleteTrain(TimePoint now, const OrderBoard::Completed& done) {
  const TrainOrder& order = std::get<TrainOrder>(done.order.what);
  const auto& [first_id, first] = *done.outcomes.begin();
  const TrainDone& its = std::get<TrainDone>(first);
  // Together they report the same; apart each its own share.
  const bool apart = options_.job.train.asynchronous();
  const size_t losses = options_.job.model.losses.size();
  Trained all{its.samples, its.loss_sums, its.first_losses};
  if (apart) all = {.loss_sums = std::vector<double>(losses)};
  for (const auto& [id, outcome] : done.outcomes) {
    const TrainDone& other = std::get<TrainDone>(outcome);
    all.seconds = std::max(all.seconds, other.seconds);
    if (other.end_step != order.end_step || !TellsOf(losses, other) ||
        (!apart && other.samples != its.samples)) {
      return Internal("{} and {} disagree on what steps {} to {} were",
                      membership_.Find(first_id)->Name(), membership_.Find(id)->Name(),
                      order.first_step, order.end_step);
    }
    if (!apart) continue;
    all.samples += other.samples;
    for (size_t l = 0; l < all.loss_sums.size(); ++l) all.loss_sums[l] += other.loss_sums[l];
    if (all.first_losses.empty()) all.first_losses = other.first_losses;
  }
  // Apart, one worker begins an order while another is still in the one before.
  if (apart) all.seconds = SecondsBetween(std::exchange(trained_until_, now), now);
  splits_.Close(done.order.number);
  course_->OnTrained(order.end_step, all);
  last_step_at_ = now;
  for (const LossMean& of : course_->MeansOf(all.loss_sums, all.samples)) {
    WarnIfDiverged(now, of, "training");
  }
  return OkStatus();
}

// A loss far above where it began tells of a step size that is too large: told once of each.
void JobState::WarnIfDiverged(TimePoint now, const LossMean& mean, std::string_view data) {
  const std::optional<double> first = course_->FirstLossOf(mean.loss);
  if (!first.has_value() || !HasDiverged(mean.mean, *first)) return;
  if (!diverged_.insert(mean.loss).second) return;
  const Step step = course_->state().step;
  std::string why = fmt::format(
      "loss {} has diverged: {:.5g} on {} data at step {}, {:.5g} at the "
      "job's first step; lower the learning rate",
      mean.loss, mean.mean, data, step, *first);
  LogWarn("job.loss_diverged", {{"why", why}});
  AddEvent(now, "loss_diverged",
           {{"loss", mean.loss},
            {"step", static_cast<int64_t>(step)},
            {"mean", mean.mean},
            {"first", *first},
            {"why", std::move(why)}});
}

Status JobState::CompleteEvaluate(TimePoint now, OrderBoard::Completed done) {
  const EvaluateOrder order = std::get<EvaluateOrder>(done.order.what);
  DT_TRY(const LossMetrics metrics,
         MergeEvaluation(OutcomesOf<EvaluateDone>(done), options_.job.model.losses));
  const std::string split = order.split == SplitKind::kTest ? "test" : "valid";
  for (const Metrics& of : metrics) {
    LogInfo("job.evaluated", {{"split", split},
                              {"step", order.step},
                              {"loss", of.loss},
                              {"auc", Rounded(of.auc.value_or(0), 6)},
                              {"logloss", Rounded(of.logloss.value_or(0), 6)}});
  }
  if (options_.goal == Goal::kEvaluate) {
    evaluated_ = metrics;
    return OkStatus();
  }
  const float before = course_->state().decisions.rate_scale;
  course_->OnEvaluated(metrics);
  for (const Metrics& of : metrics) {
    if (of.logloss.has_value()) {
      WarnIfDiverged(now, {of.loss, *of.logloss},
                     order.split == SplitKind::kTest ? "test" : "validation");
    }
  }
  const DecisionState& decided = course_->state().decisions;
  const auto step = static_cast<int64_t>(order.step);
  if (decided.rate_scale != before) {
    AddEvent(now, "rate_changed", {{"step", step}, {"rate_scale", double{decided.rate_scale}}});
  }
  if (decided.stopped && order.split == SplitKind::kValid)
    AddEvent(now, "early_stop", {{"step", step}});
  return OkStatus();
}

Status JobState::CompleteSave(TimePoint now, const OrderBoard::Completed& done) {
  Manifest manifest{.job = options_.job.job,
                    .course = course_->state(),
                    .train_rows = data_.begin()->second.train_rows,
                    .slices = slices_,
                    .resume_fingerprint = options_.job.resume_fingerprint,
                    .resume_text = options_.job.resume_text,
                    .model = model_,
                    .written = WallTimeText()};
  for (const TableConfig& table : options_.job.model.tables) manifest.tables.push_back(table.name);
  Writing& writing = writing_.emplace();
  for (const auto& [id, outcome] : done.outcomes) {
    const SaveDone& its = std::get<SaveDone>(outcome);
    manifest.files.insert(manifest.files.end(), its.files.begin(), its.files.end());
    if (its.writing) writing.servers.insert(id);
  }
  for (const auto& [id, saved] : std::exchange(saved_early_, {})) {
    if (writing.servers.erase(id) == 0) continue;
    manifest.files.insert(manifest.files.end(), saved.files.begin(), saved.files.end());
  }
  for (const ProcessId id : std::exchange(writers_lost_, {})) {
    if (writing.servers.erase(id) != 0) writing.lost = true;
  }
  writing.manifest = std::move(manifest);
  writing.best = std::get<course::Save>(*out_).best;
  course_->OnCut();
  return writing.servers.empty() ? CommitSave(now) : OkStatus();
}

Status JobState::TakeSaved(TimePoint now, const Member& from, const SavedMessage& saved) {
  const auto* const save = out_.has_value() ? std::get_if<course::Save>(&*out_) : nullptr;
  if (!writing_.has_value() && save != nullptr && save->step == saved.step) {
    saved_early_[from.id] = saved;  // Others have not answered the order yet.
    return OkStatus();
  }
  if (!writing_.has_value() || writing_->manifest.course.step != saved.step ||
      writing_->servers.erase(from.id) == 0) {
    return Internal("{} has written a checkpoint of step {}, which it was not asked for",
                    from.Name(), saved.step);
  }
  std::vector<CheckpointFile>& files = writing_->manifest.files;
  files.insert(files.end(), saved.files.begin(), saved.files.end());
  return writing_->servers.empty() ? CommitSave(now) : OkStatus();
}

Status JobState::CommitSave(TimePoint now) {
  const Writing written = *std::exchange(writing_, std::nullopt);
  const Manifest& manifest = written.manifest;
  if (written.lost) {
    const Step step = manifest.course.step;
    AddEvent(now, "checkpoint_abandoned", {{"step", static_cast<int64_t>(step)}});
    LogWarn("job.checkpoint_abandoned", {{"step", step}, {"why", "a server was lost meanwhile"}});
    course_->OnAbandoned();
    course_->RequestSave();
    return OkStatus();
  }
  Result<std::string> folder = surroundings_.CommitCheckpoint(manifest, written.best);
  if (!folder.ok()) {
    if (last_checkpoint_.empty()) return folder.status();
    return WithHint(folder.status(),
                    fmt::format("the last good checkpoint is {}", last_checkpoint_));
  }
  last_checkpoint_ = *folder;
  last_checkpoint_at_ = now;
  AddEvent(now, "checkpoint",
           {{"step", static_cast<int64_t>(manifest.course.step)}, {"folder", *folder}});
  LogInfo("job.checkpoint", {{"step", manifest.course.step}, {"folder", *folder}});
  TellKept(now, manifest.course.step, *folder);
  course_->OnWritten();
  return OkStatus();
}

Status JobState::CompleteFinish(const OrderBoard::Completed& done) {
  using Sum = std::pair<uint64_t, uint64_t>;  // High, low.
  std::map<std::string, Sum> sums;
  std::map<std::string, Sum> replicas;  // Of tables on workers.
  for (const auto& [id, outcome] : done.outcomes) {
    const FinishDone& its = std::get<FinishDone>(outcome);
    final_stats_[id] = its.stats;
    for (const TableReport& report : its.tables) {
      const Sum sum = {report.checksum_high, report.checksum_low};
      const Member& from = *membership_.Find(id);
      const bool again =
          from.role() == Role::kWorker && !replicas.try_emplace(report.name, sum).second;
      if (again && replicas[report.name] != sum) {
        return Internal("{} holds other rows of table {} than the workers before it", from.Name(),
                        report.name);
      }
      (again ? AddReplica : AddReport)(report, tables_[report.name]);
      if (again) continue;
      sums[report.name].first += sum.first;
      sums[report.name].second += sum.second;
    }
    if (its.dense_checksum.empty()) continue;
    if (dense_checksum_.empty()) dense_checksum_ = its.dense_checksum;
    if (dense_checksum_ != its.dense_checksum) {
      return Internal("{} holds other dense parameters than the workers before it",
                      membership_.Find(id)->Name());
    }
  }
  for (const auto& [name, sum] : sums)
    tables_[name].checksum = HexOf(sum.first) + HexOf(sum.second);
  finished_ = true;
  if (course_.has_value()) course_->OnDone();
  return OkStatus();
}

}  // namespace dt::scheduler
