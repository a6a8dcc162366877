#include "scheduler/report/status_of.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>

#include "common/base/written_paths.h"

namespace dt::scheduler {
namespace {

uint32_t ShardsOf(const ShardMap& map, ProcessId server) {
  uint32_t shards = 0;
  for (const Chain& chain : map.chains) shards += chain.Has(server) ? 1 : 0;
  return shards;
}

// The host's name, and the address if two members have the same name and different addresses.
std::string HostOf(const Member& member, const Membership& all) {
  const JoinMessage& join = member.join;
  const bool ambiguous = std::ranges::any_of(all.members(), [&](const Member& other) {
    return other.join.host == join.host && other.join.address != join.address;
  });
  return ambiguous && !join.address.empty() ? fmt::format("{} ({})", join.host, join.address)
                                            : join.host;
}

// For example "3 tables on servers, 1 on gpu"; places with a count of 0 are left out.
std::string CountsText(std::string_view what,
                       std::span<const std::pair<std::string_view, size_t>> counts) {
  std::string text;
  for (const auto& [place, count] : counts) {
    if (count == 0) continue;
    const std::string named = fmt::format(" {}{}", what, count == 1 ? "" : "s");
    text += fmt::format("{}{}{} on {}", text.empty() ? "" : ", ", count, text.empty() ? named : "",
                        place);
  }
  return text;
}

}  // namespace

std::string PlacesText(const Graph& graph) {
  const auto on_gpu = [](const auto& placed) { return placed.device == Device::kGpu; };
  const auto nodes_on_gpu = static_cast<size_t>(std::ranges::count_if(graph.nodes, on_gpu));
  size_t on_servers = 0, tables_on_gpu = 0;
  for (const TableUse& table : graph.tables) {
    on_servers += table.store == kNone;
    tables_on_gpu += table.store != kNone && on_gpu(graph.value(table.store));
  }
  const std::pair<std::string_view, size_t> nodes[] = {{"cpu", graph.nodes.size() - nodes_on_gpu},
                                                       {"gpu", nodes_on_gpu}};
  const std::pair<std::string_view, size_t> tables[] = {
      {"servers", on_servers},
      {"cpu", graph.tables.size() - on_servers - tables_on_gpu},
      {"gpu", tables_on_gpu}};
  const std::string of_tables = CountsText("table", tables);
  return CountsText("node", nodes) + (of_tables.empty() ? "" : "; ") + of_tables;
}

void MergeProcesses(JobStatus& status) {
  if (status.processes.empty()) return;
  JobStatus::Process one = status.processes.front();
  one.role = "train";
  one.id = 0;
  for (const JobStatus::Process& p : status.processes) {
    one.heartbeat_age = std::min(one.heartbeat_age, p.heartbeat_age);
    one.step = std::max(one.step, p.step);
    one.shards = std::max(one.shards, p.shards);
    one.cpu_seconds = std::max(one.cpu_seconds, p.cpu_seconds);
    one.peak_rss_bytes = std::max(one.peak_rss_bytes, p.peak_rss_bytes);
    one.bytes_sent = std::max(one.bytes_sent, p.bytes_sent);
    one.bytes_received = std::max(one.bytes_received, p.bytes_received);
    if (p.accelerator.has_value()) one.accelerator = p.accelerator;
  }
  status.processes = {std::move(one)};
}

namespace {

JobStatus::Process ProcessOf(const Member& member, const Job& job, TimePoint now) {
  const Presence& presence = job.membership().presence(member.id);
  const ProcessStats& stats = presence.report.stats;
  JobStatus::Process process{std::string(NameOf(member.role())),
                             member.id.value(),
                             member.join.pid,
                             HostOf(member, job.membership()),
                             SecondsBetween(presence.heard, now),
                             presence.report.step,
                             ShardsOf(job.record().start.view.map, member.id),
                             stats.cpu_seconds,
                             stats.peak_rss_bytes,
                             stats.bytes_sent,
                             stats.bytes_received};
  if (const DeviceInfo* device = member.accelerator()) process.accelerator = *device;
  return process;
}

// Totals of tables, from the members' last reports.
std::map<std::string, JobResult::Table> TablesOf(const Membership& all) {
  std::map<std::string, JobResult::Table> tables;
  std::set<std::string_view> replicated;
  for (const Member& m : all.members()) {
    for (const TableReport& report : all.presence(m.id).report.tables) {
      const bool again = m.role() == Role::kWorker && !replicated.insert(report.name).second;
      (again ? AddReplica : AddReport)(report, tables[report.name]);
    }
  }
  return tables;
}

void AddTraining(const TrainingRun& training, JobStatus& to) {
  const Progress progress = training.progress();
  to.epoch = progress.epoch + 1;
  to.epochs = progress.epochs;
  to.step = progress.step;
  to.steps = progress.steps;
  to.samples_per_second = progress.samples_per_second;
  to.train = progress.train;
  to.learning_rate = progress.learning_rate;
  to.seconds_left = progress.seconds_left;
  const JobSchedule& schedule = training.schedule();
  to.samples = schedule.state().samples;
  to.lr_scale = schedule.lr_scale();
  to.history = schedule.state().history;
  to.curve = schedule.state().curve;
}

}  // namespace

JobStatus StatusOf(const Job& job, TimePoint now) {
  JobStatus status;
  status.job = job.config().job;
  status.phase = NameOf(job.phase());
  if (job.plan().has_value()) status.places = PlacesText(job.plan()->graph);
  status.checkpoint = WithWrittenPaths(job.record().last_checkpoint);
  status.events = job.record().events;
  status.seconds = job.SecondsAt(now);
  for (const LossConfig& loss : job.config().model.losses) status.losses.push_back(loss.name);
  if (job.phase() == JobPhase::kEnded) status.outcome = job.outcome();
  for (const Member& m : job.membership().members()) {
    status.processes.push_back(ProcessOf(m, job, now));
  }
  status.tables = TablesOf(job.membership());
  if (job.training() != nullptr) AddTraining(*job.training(), status);
  return status;
}

}  // namespace dt::scheduler
