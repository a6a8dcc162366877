#include "scheduler/state/job_context.h"

#include <algorithm>

#include "common/base/log.h"
#include "common/layout/owner.h"

namespace dt::scheduler {

std::vector<ProcessId> IdsOf(const JobContext& job, Audience audience) {
  std::vector<ProcessId> ids = job.record.views.workers;
  if (audience == Audience::kWorkers) return ids;
  for (const Member* server : job.members.OfRole(Role::kServer)) ids.push_back(server->id);
  return ids;
}

std::vector<uint32_t> SliceOwners(const JobContext& job) {
  std::vector<uint32_t> owners;
  if (job.options.job.train.asynchronous()) {
    for (const ProcessId id : job.record.views.workers) owners.push_back(id.value());
    return owners;
  }
  const uint64_t teams = job.record.views.workers.size() / std::max(1u, job.record.start.team);
  const uint64_t slices = job.options.slices();
  for (uint64_t k = 0; k < slices; ++k) owners.push_back(OwnerOf(k, slices, teams));
  return owners;
}

uint64_t Issue(JobContext& job, Order what, Audience to) {
  const std::vector<ProcessId> ids = IdsOf(job, to);
  const OrderMessage order = job.orders.Issue(std::move(what), ids);
  for (ProcessId id : ids) job.out.Send(*job.members.Find(id), order);
  return order.number;
}

void SetMap(JobContext& job, ShardMap map) {
  job.record.map = std::move(map);
  for (const Member& member : job.members.members()) {
    job.out.Send(member, MapChangedMessage{job.record.map});
  }
}

void SendStart(JobContext& job, const Member& to) {
  StartMessage start = job.record.start;
  start.view.map = job.record.map;
  start.view.number = job.record.views.number;
  start.view.workers = job.record.views.workers;
  // A server that goes on with a log has that of the log, and loads again what it had not loaded.
  if (!to.returned) start.view.generation = job.record.generation;
  if (to.role() == Role::kServer) {
    start.plans.clear();
  } else if (start.plans.size() > 1) {
    const std::vector<ProcessId>& workers = start.view.workers;
    const auto rank = std::ranges::find(workers, to.id) - workers.begin();
    start.plans = {start.plans[static_cast<size_t>(rank) % start.plans.size()]};
  }
  job.out.Send(to, std::move(start));
}

Result<Order> LoadInNextGeneration(JobContext& job, Step step, std::string folder) {
  Generation& generation = job.record.generation;
  generation = Generation(generation.value() + 1);
  DT_TRY_STATUS(job.environment.KeepGeneration(generation));
  return Order(LoadOrder{step, std::move(folder), generation});
}

void NoteResumed(JobContext& job, TimePoint now, const LoadOrder& load) {
  if (load.begins) {
    job.out.AddEvent(now, "begun", {{"from", load.folder}});
    return LogInfo("job.begun", {{"folder", load.folder}});
  }
  job.record.last_checkpoint = load.folder;
  job.out.AddEvent(now, "resumed", {{"step", static_cast<int64_t>(load.step)}});
  LogInfo("job.resumed", {{"step", load.step}, {"folder", load.folder}});
}

}  // namespace dt::scheduler
