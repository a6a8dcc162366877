#include "scheduler/job/job_start.h"

#include <algorithm>

#include "common/base/log.h"
#include "common/plan/plan_codec.h"
#include "ops/op_spec.h"
#include "scheduler/shards/chains.h"
#include "scheduler/state/stripes.h"

namespace dt::scheduler {
namespace {

constexpr const char* kOtherColumns = "different columns";

// How the data of two workers differs; empty if it does not.
std::string DifferenceOf(const DataReadyMessage& a, const DataReadyMessage& b) {
  if (a.train_rows != b.train_rows) {
    return fmt::format("{} and {} training samples", a.train_rows, b.train_rows);
  }
  if (a.valid_rows != b.valid_rows) {
    return fmt::format("{} and {} validation samples", a.valid_rows, b.valid_rows);
  }
  if (a.test_rows != b.test_rows) {
    return fmt::format("{} and {} test samples", a.test_rows, b.test_rows);
  }
  if (a.columns != b.columns) return kOtherColumns;
  return a.fingerprint != b.fingerprint ? "different values" : "";
}

Status CheckTrainingData(const JobOptions& options, const DataReadyMessage& data) {
  if (options.job.data.stream.has_value()) return OkStatus();  // See Stream::Begin.
  if (data.train_rows == 0) {
    return WithHint(Invalid("there is no training data"), "data.train names the files");
  }
  const uint64_t saved_rows = options.resumed() ? options.resumed()->manifest.train_rows : 0;
  if (saved_rows != 0 && saved_rows != data.train_rows) {
    return WithHint(Invalid("the checkpoint is of a job on {} training samples; there are {} now, "
                            "so its place in them is not known",
                            saved_rows, data.train_rows),
                    "give it the same files, or start anew with --resume never");
  }
  const bool decides = options.job.optimizer.plateau || options.job.train.early_stop;
  if (decides && data.valid_rows == 0) {
    return WithHint(Invalid("the plateau schedule and early_stop need validation data"),
                    "data.valid names the files");
  }
  return OkStatus();
}

Status CheckData(const JobOptions& options, const DataReadyMessage& data) {
  if (options.goal == Goal::kTrain) return CheckTrainingData(options, data);
  if (data.test_rows + data.valid_rows > 0) return OkStatus();
  return WithHint(Invalid("there is neither test nor validation data"),
                  "data.test names the files");
}

PlanInput PlanInputOf(const JobContext& job) {
  PlanInput input{.columns = job.record.data.columns,
                  .slices = job.options.slices(),
                  .servers = static_cast<uint32_t>(job.members.OfRole(Role::kServer).size()),
                  .workers = static_cast<uint32_t>(job.record.views.workers.size()),
                  .machine = job.members.OnFullestMachine()};
  if (job.options.begins()) input.begins_from = job.record.begins_from;
  for (const ProcessId id : job.record.views.workers) {
    const DeviceInfo* const device = job.members.Find(id)->accelerator();
    if (device != nullptr) input.accelerators.push_back(*device);
  }
  return input;
}

StartMessage StartOf(const JobContext& job, MadePlan& made) {
  std::vector<ServerPlace> servers;
  for (const Member* server : job.members.OfRole(Role::kServer)) {
    servers.push_back({{server->id, server->join.endpoints}, server->join.host});
  }
  const ClusterConfig& cluster = job.options.job.cluster;
  StartMessage start;
  start.view = {job.record.generation, job.record.views.number,
                MakeChains(MapVersion(1), cluster.shards, cluster.replicas, servers),
                job.record.views.workers};
  start.slices = job.options.slices();
  start.team = static_cast<uint32_t>(made.plans.size());
  start.plans = std::move(made.plans);
  const JobOptions::Checkpoint* const resumed = job.options.resumed();
  start.stripe_rows = StripeRowsOf(job.record.data);
  start.stream_begins = job.record.stream_begins;
  if (resumed != nullptr && resumed->manifest.schedule.offsets.has_value()) {
    start.stream_begins = *resumed->manifest.schedule.offsets;
  }
  start.steps_before = resumed ? resumed->manifest.steps_before : made.taken.steps_before;
  for (const TableUse& table : made.plan.graph.tables) {
    if (table.store != kNone) start.tables_on_worker.push_back(table.id);
  }
  return start;
}

}  // namespace

JobStart::JobStart(JobContext& job, TimePoint now)
    : job_(job), begin_(now), deadline_(now + job.options.job.cluster.start_timeout) {
  if (job.record.start.plans.empty()) return;
  const std::string& bytes = job.record.start.plans.front().bytes;
  Result<Plan> plan = DecodePlan(std::as_bytes(std::span(bytes)), TraitsOf);
  if (plan.ok()) plan_ = *std::move(plan);
}

Status JobStart::OnDataReady(const Member& from, DataReadyMessage data) {
  if (from.role() != Role::kWorker) return OkStatus();
  const std::list<Member>& members = job_.members.members();
  const auto first = std::ranges::find(members, true, &Member::read);
  const std::vector<StripeReport> stripes = std::exchange(data.stripes, {});
  DataReadyMessage& all = job_.record.data;
  std::string difference;
  if (first == members.end()) {
    all = std::move(data);
  } else if (!job_.options.job.data.by_slices) {
    difference = DifferenceOf(all, data);
  } else if (all.columns != data.columns) {
    difference = kOtherColumns;
  }
  if (difference.empty() && job_.options.job.data.by_slices) difference = AddStripes(stripes, all);
  if (!difference.empty()) {
    return WithHint(
        Malformed("{} and {} read different data: {}", first->Name(), from.Name(), difference),
        "give every worker the same files");
  }
  job_.members.SetRead(from.id);
  return OkStatus();
}

Status JobStart::Advance(TimePoint now) {
  JobPhase& phase = job_.record.phase;
  if (phase == JobPhase::kGathering && HasAll(now)) {
    phase = JobPhase::kReading;
    if (job_.options.job.data.by_slices) {
      for (const Member* worker : job_.members.OfRole(Role::kWorker)) SendReadData(job_, *worker);
    }
  }
  if (phase == JobPhase::kReading && Late() == nullptr) {
    if (!HasAllStripes(job_)) return Internal("no worker has read some stripe of the data");
    DT_TRY_STATUS(CheckData(job_.options, job_.record.data));
    phase = JobPhase::kPlanning;
  }
  if (phase == JobPhase::kPlanning && !planning_since_.has_value()) StartPlanning(now);
  if (phase == JobPhase::kStarting && Late() == nullptr) {
    phase = JobPhase::kRunning;
    job_.out.AddEvent(now, "started", {});
    LogInfo("job.running", {{"processes", job_.members.members().size()}});
  }
  return OkStatus();
}

bool JobStart::HasAll(TimePoint now) const {
  const ReturnsRecord& returns = job_.record.returns;
  if (returns.count == 0) return job_.members.complete();
  if (!HasEnough()) return false;
  const ClusterConfig& cluster = job_.options.job.cluster;
  const WantedRecord& wanted = job_.record.wanted;
  // Some may have come in the place of others that are silent, and expected, too.
  const auto all = [&](Role role, uint32_t at_first, uint32_t by_now) {
    const auto expected = static_cast<size_t>(
        std::ranges::count(returns.expected, role, &ReturnsRecord::Expected::role));
    const size_t most = by_now > 0 ? by_now : at_first;
    return job_.members.OfRole(role).size() >= std::min(expected, most);
  };
  return now - begin_ > cluster.wait_for_server ||
         (all(Role::kServer, cluster.servers, wanted.servers) &&
          all(Role::kWorker, cluster.workers, wanted.workers));
}

bool JobStart::HasEnough() const {
  return job_.members.OfRole(Role::kServer).size() >= job_.options.job.cluster.replicas &&
         job_.members.OfRole(Role::kWorker).size() >= job_.options.job.team_size();
}

// The workers of the first view, as far as there are slices for them.
void JobStart::StartPlanning(TimePoint now) {
  const JobConfig& config = job_.options.job;
  const size_t team = std::max(1u, config.team_size());
  std::vector<ProcessId>& workers = job_.record.views.workers;
  workers.clear();
  for (const Member* worker : job_.members.OfRole(Role::kWorker)) {
    if (worker->read) workers.push_back(worker->id);
  }
  const size_t teams = workers.size() / team;
  const bool spares = !config.train.asynchronous() && teams > job_.options.slices();
  workers.resize(team * (spares ? job_.options.slices() : teams));
  planning_since_ = now;
  job_.environment.StartPlanning(PlanInputOf(job_));
}

Status JobStart::OnPlanMade(TimePoint now, PlanMade made) {
  if (job_.record.phase != JobPhase::kPlanning || !planning_since_.has_value()) return OkStatus();
  DT_TRY(MadePlan plan, std::move(made.plan));
  deadline_ += now - *planning_since_;
  for (auto& [kind, why] : plan.notes) {
    job_.out.AddEvent(now, std::move(kind), {{"why", std::move(why)}});
  }
  job_.record.plan = {std::move(plan.model), std::move(plan.explanation), plan.step_seconds,
                      plan.taken.parts};
  job_.record.views.number = ViewNumber(1);
  const ClusterConfig& cluster = job_.options.job.cluster;
  if (job_.record.wanted == WantedRecord()) {
    job_.record.wanted = {cluster.servers, cluster.workers};
  }
  job_.record.start = StartOf(job_, plan);
  job_.record.map = job_.record.start.view.map;
  job_.record.phase = JobPhase::kStarting;
  plan_ = std::move(plan.plan);
  for (const Member& member : job_.members.members()) SendStart(job_, member);
  return OkStatus();
}

const Member* JobStart::Late() const {
  const bool reading = job_.record.phase == JobPhase::kReading;
  const auto late = std::ranges::find_if(job_.members.members(), [&](const Member& member) {
    const bool works = member.role() == Role::kWorker;
    if (reading) return works && !member.read;
    const bool joins_later = works && std::ranges::count(job_.record.views.workers, member.id) == 0;
    return !member.ready && !joins_later;
  });
  return late == job_.members.members().end() ? nullptr : &*late;
}

Status JobStart::CheckTime(TimePoint now) const {
  const JobPhase phase = job_.record.phase;
  if (phase >= JobPhase::kRunning || phase == JobPhase::kPlanning) return OkStatus();
  const double waited = SecondsBetween(begin_, now);
  const ReturnsRecord& returns = job_.record.returns;
  if (phase == JobPhase::kGathering && returns.count > 0) {
    if (HasEnough() || now - begin_ <= job_.options.job.cluster.wait_for_server) return OkStatus();
    return WithHint(Timeout("{}; {:.0f} s later only {} have come back", returns.why, waited,
                            job_.members.Present()),
                    "start the others again, or raise cluster.wait_for_server");
  }
  if (now <= deadline_) return OkStatus();
  if (phase == JobPhase::kGathering) {
    return WithHint(Timeout("after {:.0f} s only {} have joined", waited, job_.members.Present()),
                    "start the others, or raise cluster.start_timeout");
  }
  const Member* const late = Late();
  if (late == nullptr) return OkStatus();
  return WithHint(
      Timeout("after {:.0f} s {} {}", waited, late->Name(),
              phase == JobPhase::kReading ? "is still reading its data" : "has not started"),
      "see its log, or raise cluster.start_timeout");
}

}  // namespace dt::scheduler
