#include "scheduler/elastic/worker_views.h"

#include <algorithm>

#include "common/base/log.h"

namespace dt::scheduler {

Status WorkerViews::CheckLoss(const Member& worker) const {
  const JobConfig& job = job_.options.job;
  if (job_.record.phase != JobPhase::kRunning || !job_.record.training.has_value()) {
    return Unavailable("the job does not train yet");
  }
  if (job.train.asynchronous()) {
    return NotYet("asynchronous training does not go on without a worker");
  }
  if (job_.record.start.team > 1) return NotYet("a team does not go on without a worker");
  if (!job_.record.start.tables_on_worker.empty()) {
    return NotYet("training with tables on workers does not go on without one");
  }
  if (job.parallel.optimizer.on) {
    return Unavailable("its part of the optimizer's state is lost");
  }
  const std::vector<ProcessId>& workers = record().workers;
  const bool only = workers.size() == 1 && workers.front() == worker.id;
  return only ? Unavailable("it was the last worker") : OkStatus();
}

void WorkerViews::Without(TimePoint now, ProcessId worker) {
  ViewsRecord& views = record();
  views.number = ViewNumber(views.number.value() + 1);
  std::erase(views.workers, worker);
  views.forming = true;
  views.reports.clear();
  views.missing = {views.workers.begin(), views.workers.end()};
  for (const Member* server : job_.members.OfRole(Role::kServer)) views.missing.insert(server->id);
  // The rendezvous has keys of the old view only.
  job_.record.rendezvous = {};
  if (!since_.has_value()) since_ = now;
  for (const ProcessId id : views.missing) {
    job_.out.Send(*job_.members.Find(id), NewViewMessage{view()});
  }
}

View WorkerViews::view() const {
  return {job_.record.generation, record().number, job_.record.map, record().workers};
}

Status WorkerViews::OnReport(const Member& from, const ViewReportMessage& report) {
  ViewsRecord& views = record();
  if (!views.forming || report.view != views.number || views.missing.erase(from.id) == 0) {
    return OkStatus();
  }
  views.reports[from.id] = {report.step, report.entered};
  return OkStatus();
}

// Other orders than to train are out alone. Then no step is under way: some workers may have loaded
// a checkpoint and others not, and servers count every step as complete at the end.
Result<Step> WorkerViews::CompleteSteps() const {
  const ViewsRecord& views = record();
  Step complete = 0;
  bool trains = false;
  for (const OrdersOut::Out& out : job_.record.orders.out) {
    if (const auto* load = std::get_if<LoadOrder>(&out.order.what)) return load->step;
    trains = trains || std::holds_alternative<TrainOrder>(out.order.what);
  }
  for (const auto& [id, report] : views.reports) {
    const bool worker = std::ranges::count(views.workers, id) > 0;
    if (worker || trains) complete = std::max(complete, report.step);
  }
  for (const ProcessId id : views.workers) {
    const ViewReport& report = views.reports.at(id);
    if (report.step == complete || (report.step + 1 == complete && report.entered)) continue;
    return Internal("{} has done {} steps, and {} are complete", job_.members.Find(id)->Name(),
                    report.step, complete);
  }
  return complete;
}

Status WorkerViews::Settle(TimePoint now) {
  ViewsRecord& views = record();
  if (!views.forming || !views.missing.empty()) return OkStatus();
  DT_TRY(views.step, CompleteSteps());
  views.forming = false;
  views.reports.clear();
  const std::vector<uint32_t> owners = SliceOwners(job_);
  OrderTracker::NewWorkers workers{views.workers, owners, {}};
  for (const Member* server : job_.members.OfRole(Role::kServer)) {
    workers.servers.insert(server->id);
  }
  const auto again = job_.orders.OnNewWorkers(workers);
  const double seconds = SecondsBetween(std::exchange(since_, std::nullopt).value_or(now), now);
  job_.out.AddEvent(now, "view",
                    {{"number", static_cast<int64_t>(views.number.value())},
                     {"workers", static_cast<int64_t>(views.workers.size())},
                     {"step", static_cast<int64_t>(views.step)},
                     {"seconds", seconds}});
  LogInfo("job.view", {{"number", views.number.value()},
                       {"workers", views.workers.size()},
                       {"step", views.step},
                       {"seconds", seconds}});
  for (const ProcessId id : views.workers) {
    job_.out.Send(*job_.members.Find(id), ViewBeginsMessage{views.number, views.step});
  }
  for (const auto& [id, order] : again) job_.out.Send(*job_.members.Find(id), order);
  return OkStatus();
}

void WorkerViews::SendTo(const Member& to) const {
  const ViewsRecord& views = record();
  if (views.missing.contains(to.id)) job_.out.Send(to, NewViewMessage{view()});
  const bool worker = std::ranges::count(views.workers, to.id) > 0;
  if (worker && !views.forming && views.number > ViewNumber(1)) {
    job_.out.Send(to, ViewBeginsMessage{views.number, views.step});
  }
}

}  // namespace dt::scheduler
