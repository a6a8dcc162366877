#include "scheduler/elastic/worker_views.h"

#include <algorithm>

#include "common/base/log.h"
#include "scheduler/membership/worker_suspects.h"

namespace dt::scheduler {
namespace {

constexpr size_t kAsyncWorkersMax = 1 << 16;

}  // namespace

// ------------------------------------------------------------ whether

Status WorkerViews::CheckChanges() const {
  const JobConfig& job = job_.options.job;
  const char* const hint = "start all workers of such a job together";
  const auto expires = [](const TableConfig& table) { return table.life.expiry_steps > 0; };
  // Their set, by which rows expire, is not known any more when a log is read back.
  if (job.train.asynchronous() && job.checkpoint.durability == Durability::kLog &&
      std::ranges::any_of(job.model.tables, expires)) {
    return WithHint(NotYet("the workers of asynchronous training cannot change yet while a log is "
                           "kept and rows expire by steps"),
                    hint);
  }
  if (job_.record.start.team > 1) {
    return WithHint(NotYet("the workers of teams cannot change yet"), hint);
  }
  if (job.parallel.optimizer.on) {
    return WithHint(NotYet("workers that divide the optimizer's state cannot change yet"), hint);
  }
  return OkStatus();
}

Status WorkerViews::CheckLoss(const Member& worker) const {
  if (job_.record.phase != JobPhase::kRunning || !job_.record.training.has_value()) {
    return Unavailable("the job does not train yet");
  }
  if (!Has(worker.id)) return OkStatus();
  DT_TRY_STATUS(CheckChanges());
  return record().workers.size() == 1 ? Unavailable("it was the last worker") : OkStatus();
}

Status WorkerViews::CheckDevices(const JoinMessage& join, const std::optional<Plan>& plan) const {
  const bool has = std::ranges::any_of(
      join.devices, [](const DeviceInfo& device) { return device.kind != DeviceKind::kCpu; });
  if (has || !plan.has_value()) return OkStatus();
  const bool needs = std::ranges::any_of(
      plan->graph.values, [](const Value& value) { return value.device == Device::kGpu; });
  if (!needs) return OkStatus();
  return WithHint(Invalid("the job's plan computes on an accelerator, and this worker has none"),
                  "start it on a machine like those of the other workers");
}

size_t WorkerViews::PlacesMax() const {
  return job_.options.job.train.asynchronous() ? kAsyncWorkersMax : job_.options.slices();
}

bool WorkerViews::WantsChange(TimePoint now) const {
  if (record().workers.size() < PlacesMax() && !Rested(now).empty()) return true;
  const auto leaves = [this](ProcessId id) { return job_.members.Find(id)->draining; };
  return record().workers.size() > 1 && std::ranges::any_of(record().workers, leaves);
}

bool WorkerViews::Has(ProcessId worker) const {
  return std::ranges::count(record().workers, worker) > 0;
}

std::vector<ProcessId> WorkerViews::Spares() const {
  std::vector<ProcessId> spares;
  for (const Member* worker : job_.members.OfRole(Role::kWorker)) {
    if (worker->ready && !worker->draining && !Has(worker->id)) spares.push_back(worker->id);
  }
  return spares;
}

Duration WorkerViews::RestOf(TimePoint now, ProcessId worker) const {
  return rests_.Left(now, job_.members.Find(worker)->join.host);
}

std::vector<ProcessId> WorkerViews::Rested(TimePoint now) const {
  std::vector<ProcessId> rested = Spares();
  std::erase_if(rested, [&](ProcessId id) { return RestOf(now, id) > Duration(); });
  return rested;
}

// ------------------------------------------------------------ the next view

void WorkerViews::Without(TimePoint now, const std::set<ProcessId>& workers) {
  // An asynchronous worker that joined now would have no slices of the orders that are out, and
  // others would wait for its clock.
  const bool asynchronous = job_.options.job.train.asynchronous();
  const std::vector<ProcessId> spares = asynchronous ? std::vector<ProcessId>() : Rested(now);
  std::vector<ProcessId> next = record().workers;
  std::erase_if(next, [&](ProcessId id) { return workers.contains(id); });
  for (const ProcessId id : spares) {
    if (next.size() < PlacesMax() && !workers.contains(id)) next.push_back(id);
  }
  Form(now, std::move(next));
}

void WorkerViews::Admit(TimePoint now) {
  std::vector<ProcessId> next = record().workers;
  for (const ProcessId id : Spares()) {
    if (next.size() >= PlacesMax()) {
      NoteWaits(now, id,
                fmt::format("waits as a spare: the job has {} workers, train.slices is {}",
                            next.size(), job_.options.slices()));
    } else if (const Duration left = RestOf(now, id); left > Duration()) {
      NoteWaits(now, id,
                fmt::format("waits for {:.0f} s: workers of its machine held the others up before",
                            SecondsBetween(now, now + left)));
    } else {
      next.push_back(id);
    }
  }
  if (next.size() > record().workers.size()) Form(now, std::move(next));
}

void WorkerViews::NoteWaits(TimePoint now, ProcessId spare, const std::string& why) {
  if (!noted_.insert(spare).second) return;
  const std::string text = fmt::format("{} {}", job_.members.Find(spare)->Name(), why);
  job_.out.AddEvent(now, "worker_waits", {{"id", int64_t{spare.value()}}, {"why", text}});
  LogInfo("job.worker_waits", {{"why", text}});
}

void WorkerViews::Form(TimePoint now, std::vector<ProcessId> workers) {
  ViewsRecord& views = record();
  views.number = ViewNumber(views.number.value() + 1);
  views.workers = std::move(workers);
  views.forming = true;
  views.reports.clear();
  views.newcomers.clear();
  views.missing = {views.workers.begin(), views.workers.end()};
  for (const Member* server : job_.members.OfRole(Role::kServer)) views.missing.insert(server->id);
  // The rendezvous has keys of the old view only.
  job_.record.rendezvous = {};
  formed_ = now;
  if (!since_.has_value()) since_ = now;
  for (const ProcessId id : views.missing) {
    job_.out.Send(*job_.members.Find(id), NewViewMessage{view()});
  }
}

View WorkerViews::view() const {
  return {job_.record.generation, record().number, job_.record.map, record().workers};
}

// ------------------------------------------------------------ reports

Status WorkerViews::OnReport(const Member& from, const ViewReportMessage& report) {
  ViewsRecord& views = record();
  if (!views.forming || report.view != views.number || views.missing.erase(from.id) == 0) {
    return OkStatus();
  }
  views.reports[from.id] = {report.step, report.entered, report.newcomer};
  return OkStatus();
}

std::optional<Suspect> WorkerViews::InTheWay(TimePoint now) {
  const Duration lease = job_.options.job.cluster.lease;
  if (forming()) {
    if (!formed_.has_value()) formed_ = now;  // By a scheduler before this one.
    return WorkerThatIsLate(job_.members, record().missing, *formed_, now, lease);
  }
  const bool asynchronous = job_.options.job.train.asynchronous();
  return WorkerInTheWay(job_.members, {record().number, record().workers, asynchronous}, now,
                        lease);
}

void WorkerViews::OnInTheWay(TimePoint now, ProcessId worker) {
  rests_.OnInTheWay(now, job_.members.Find(worker)->join.host);
}

std::vector<ProcessId> WorkerViews::Newcomers() const {
  std::vector<ProcessId> newcomers;
  for (const ProcessId id : record().workers) {
    if (record().reports.at(id).newcomer) newcomers.push_back(id);
  }
  return newcomers;
}

// Other orders than to train are out alone. Then no step is under way: some workers may have loaded
// a checkpoint and others not, and servers count every step as complete at the end.
Result<Step> WorkerViews::CompleteSteps() const {
  const ViewsRecord& views = record();
  // Asynchronous workers have not done the same steps.
  if (job_.options.job.train.asynchronous()) return job_.record.training->schedule.state.step;
  Step complete = 0;
  bool trains = false;
  for (const OrdersOut::Out& out : job_.record.orders.out) {
    if (const auto* load = std::get_if<LoadOrder>(&out.order.what)) return load->step;
    trains = trains || std::holds_alternative<TrainOrder>(out.order.what);
  }
  for (const auto& [id, report] : views.reports) {
    if ((Has(id) && !report.newcomer) || trains) complete = std::max(complete, report.step);
  }
  for (const ProcessId id : views.workers) {
    const ViewReport& report = views.reports.at(id);
    if (report.newcomer || report.step == complete) continue;
    if (report.step + 1 == complete && report.entered) continue;
    return Internal("{} has done {} steps, and {} are complete", job_.members.Find(id)->Name(),
                    report.step, complete);
  }
  return complete;
}

Status WorkerViews::Settle(TimePoint now) {
  ViewsRecord& views = record();
  if (!views.forming || !views.missing.empty()) return OkStatus();
  views.newcomers = Newcomers();
  if (views.newcomers.size() == views.workers.size()) {
    return Unavailable("the last worker that had the dense parameters was lost");
  }
  DT_TRY(views.step, CompleteSteps());
  views.forming = false;
  views.reports.clear();
  const std::vector<uint32_t> owners = SliceOwners(job_);
  OrderTracker::NewWorkers workers{.workers = views.workers,
                                   .newcomers = views.newcomers,
                                   .step = views.step,
                                   .slice_owner = owners,
                                   .asynchronous = job_.options.job.train.asynchronous()};
  for (const Member* server : job_.members.OfRole(Role::kServer)) {
    workers.servers.insert(server->id);
  }
  const auto again = job_.orders.OnNewWorkers(workers);
  NoteBegun(now);
  for (const ProcessId id : views.workers) {
    job_.out.Send(*job_.members.Find(id),
                  ViewBeginsMessage{views.number, views.step, views.newcomers});
  }
  for (const auto& [id, order] : again) job_.out.Send(*job_.members.Find(id), order);
  return OkStatus();
}

void WorkerViews::NoteBegun(TimePoint now) {
  const ViewsRecord& views = record();
  const double seconds = SecondsBetween(std::exchange(since_, std::nullopt).value_or(now), now);
  job_.out.AddEvent(now, "view",
                    {{"number", static_cast<int64_t>(views.number.value())},
                     {"workers", static_cast<int64_t>(views.workers.size())},
                     {"newcomers", static_cast<int64_t>(views.newcomers.size())},
                     {"step", static_cast<int64_t>(views.step)},
                     {"seconds", seconds}});
  LogInfo("job.view", {{"number", views.number.value()},
                       {"workers", views.workers.size()},
                       {"newcomers", views.newcomers.size()},
                       {"step", views.step},
                       {"seconds", seconds}});
}

void WorkerViews::SendTo(const Member& to) const {
  const ViewsRecord& views = record();
  if (views.missing.contains(to.id)) job_.out.Send(to, NewViewMessage{view()});
  if (Has(to.id) && !views.forming && views.number > ViewNumber(1)) {
    job_.out.Send(to, ViewBeginsMessage{views.number, views.step, views.newcomers});
  }
}

}  // namespace dt::scheduler
