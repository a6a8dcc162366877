#include "scheduler/service/status_of.h"

#include <set>

namespace dt::scheduler {
namespace {

uint32_t ShardsOf(const ShardMap& map, ProcessId server) {
  uint32_t shards = 0;
  for (const Chain& chain : map.chains) {
    for (ProcessId member : chain) shards += member == server ? 1 : 0;
  }
  return shards;
}

}  // namespace

void AddReport(const TableReport& report, JobResult::Table& to) {
  to.rows += report.rows;
  to.rows_in_memory += report.rows_in_memory;
  to.rows_on_disk += report.rows_on_disk;
  to.bytes += report.bytes;
  to.pushes_refused += report.pushes_refused;
  to.rows_expired += report.rows_expired;
  to.rows_touched += report.rows_touched;
  to.rows_fetched += report.rows_fetched;
  to.rows_written += report.rows_written;
}

void AddReplica(const TableReport& report, JobResult::Table& to) {
  to.rows_touched += report.rows_touched;
}

JobStatus StatusOf(JobState& job, const std::string& name, TimePoint now) {
  JobStatus status;
  status.job = name;
  status.phase = NameOf(job.phase());
  status.checkpoint = job.last_checkpoint();
  status.events = job.events();
  if (!status.events.empty()) status.seconds = status.events.back().t;
  for (const Member& m : job.membership().members()) {
    const ProcessStats& stats = m.report.stats;
    status.processes.push_back({std::string(NameOf(m.role())), m.id.value(), m.join.pid,
                                m.join.host, SecondsBetween(m.heard, now), m.report.step,
                                ShardsOf(job.map(), m.id), stats.cpu_seconds, stats.peak_rss_bytes,
                                stats.bytes_sent, stats.bytes_received});
    if (const DeviceInfo* device = m.accelerator()) {
      status.processes.back().accelerator = *device;
    }
  }
  std::set<std::string_view> replicated;
  for (const Member& m : job.membership().members()) {
    for (const TableReport& report : m.report.tables) {
      const bool again = m.role() == Role::kWorker && !replicated.insert(report.name).second;
      (again ? AddReplica : AddReport)(report, status.tables[report.name]);
    }
  }
  if (job.course() == nullptr) return status;
  const Progress progress = job.ProgressAt(now);
  status.epoch = progress.epoch + 1;
  status.epochs = progress.epochs;
  status.step = progress.step;
  status.steps = progress.steps;
  status.samples = job.course()->samples;
  status.samples_per_second = progress.samples_per_second;
  status.loss = progress.loss;
  status.seconds_left = progress.seconds_left;
  status.rate_scale = job.course()->decisions.rate_scale;
  status.history = job.course()->history;
  return status;
}

}  // namespace dt::scheduler
