#include "scheduler/report/status_of.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>

#include "common/base/written_paths.h"

namespace dt::scheduler {
namespace {

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
    one.heads = std::max(one.heads, p.heads);
    one.tails = std::max(one.tails, p.tails);
    one.cpu_seconds = std::max(one.cpu_seconds, p.cpu_seconds);
    one.peak_rss_bytes = std::max(one.peak_rss_bytes, p.peak_rss_bytes);
    one.bytes_sent = std::max(one.bytes_sent, p.bytes_sent);
    one.bytes_received = std::max(one.bytes_received, p.bytes_received);
    if (p.accelerator.has_value()) one.accelerator = p.accelerator;
    if (&p != &status.processes.front()) {
      one.threads.insert(one.threads.end(), p.threads.begin(), p.threads.end());
    }
  }
  status.processes = {std::move(one)};
}

namespace {

std::vector<ThreadReport> ThreadsOf(const HeartbeatMessage& report) {
  std::vector<ThreadReport> threads = report.threads;
  for (size_t e = 0; e < report.executors.size(); ++e) {
    const ExecutorReport& executor = report.executors[e];
    threads.push_back({fmt::format("executor {}", e), executor.doing, executor.turn_age});
  }
  return threads;
}

JobStatus::Process ProcessOf(const Member& member, const Job& job, TimePoint now) {
  const Presence& presence = job.membership().presence(member.id);
  const ProcessStats& stats = presence.report.stats;
  JobStatus::Process process{std::string(NameOf(member.role())),
                             member.id.value(),
                             member.join.pid,
                             HostOf(member, job.membership()),
                             SecondsBetween(presence.heard, now),
                             presence.report.step,
                             0,
                             stats.cpu_seconds,
                             stats.peak_rss_bytes,
                             stats.bytes_sent,
                             stats.bytes_received};
  if (const DeviceInfo* device = member.accelerator()) process.accelerator = *device;
  for (const Chain& chain : job.record().map.chains) {
    process.shards += chain.Has(member.id);
    process.heads += chain.head() == member.id;
    process.tails += chain.tail() == member.id;
    process.syncing += chain.IsSyncing(member.id);
  }
  const bool serves = member.role() == Role::kServer;
  process.draining = serves && member.draining;
  if (!serves && job.phase() >= JobPhase::kRunning && !job.views().Has(member.id)) {
    process.waits = member.ready ? "a spare: there is no slice of a step for it" : "it gets ready";
  }
  process.threads = ThreadsOf(presence.report);
  process.kept_bytes = presence.report.chains.kept_bytes;
  process.copied_bytes = presence.report.chains.copied_bytes;
  return process;
}

// Copies that the tails have not reported yet are there with 0.
std::vector<JobStatus::Shards::Copy> CopiesOf(const ShardMap& map, const Membership& all) {
  std::vector<JobStatus::Shards::Copy> copies;
  for (uint32_t s = 0; s < map.shards(); ++s) {
    const Chain& chain = map.chains[s];
    if (chain.syncing.empty() || all.Find(chain.tail()) == nullptr) continue;
    JobStatus::Shards::Copy& copy = copies.emplace_back();
    copy = {s, chain.tail().value(), chain.syncing.front().value()};
    for (const CopyReport& report : all.presence(chain.tail()).report.chains.copies) {
      if (report.shard != ShardId(s) || report.to != chain.syncing.front()) continue;
      copy.bytes = report.bytes;
      copy.rows = report.rows;
      copy.rows_of_shard = report.rows_of_shard;
    }
  }
  return copies;
}

void AddChains(const Job& job, JobStatus& to) {
  const ShardMap& map = job.record().map;
  if (map.chains.empty()) return;
  JobStatus::Shards shards{.map_version = map.version.value(),
                           .replicas = job.config().cluster.replicas};
  for (const Chain& chain : map.chains) {
    shards.by_members.resize(std::max(shards.by_members.size(), chain.members.size() + 1));
    ++shards.by_members[chain.members.size()];
  }
  for (const GoneProcess& gone : job.record().gone) {
    if (!gone.drained && gone.role == Role::kServer) shards.lost.push_back(gone.why);
  }
  shards.copies = CopiesOf(map, job.membership());
  if (job.phase() == JobPhase::kRunning && job.training() != nullptr) {
    shards.copies_left = job.moves().CopiesLeft();
  }
  if (shards.copies_left > 0) {
    // The reports count the rows of each shard once.
    uint64_t bytes = 0, copied = 0;
    for (const auto& [name, table] : to.tables) bytes += table.bytes;
    for (const JobStatus::Shards::Copy& copy : shards.copies) copied += copy.bytes;
    const uint64_t all = bytes / map.shards() * shards.copies_left;
    shards.bytes_left = all - std::min(all, copied);
    shards.bytes_per_second = job.moves().bytes_per_second();
    if (shards.bytes_per_second.value_or(0) > 0) {
      shards.seconds_left = static_cast<double>(shards.bytes_left) / *shards.bytes_per_second;
    }
  }
  to.shards = std::move(shards);
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

std::string UntilText(TimePoint since, TimePoint now, Duration at_most) {
  const double all = std::chrono::duration<double>(at_most).count();
  const double passed = SecondsBetween(since, now);
  return fmt::format("for {:.0f} s, {:.0f} s more at most", passed, std::max(0.0, all - passed));
}

std::string ReturnText(const Job& job, TimePoint now) {
  const ReturnsRecord& returns = job.record().returns;
  std::string text = fmt::format("the job begins again {}: {}",
                                 job.record().resumed_from.empty()
                                     ? std::string("at step 0")
                                     : "from " + WithWrittenPaths(job.record().resumed_from),
                                 returns.why);
  if (job.phase() != JobPhase::kGathering) return text;
  return fmt::format("{}; {} have joined again, others are waited for {}", text,
                     job.membership().Present(),
                     UntilText(job.began(), now, job.config().cluster.wait_for_server));
}

std::string ViewText(const Job& job, TimePoint now) {
  std::string missing;
  for (const ProcessId id : job.record().views.missing) {
    const Member* const member = job.membership().Find(id);
    if (member == nullptr) continue;
    missing += (missing.empty() ? "" : ", ") + member->Name();
  }
  return fmt::format("the workers change for {:.1f} s; {} still to answer",
                     SecondsBetween(job.views().since().value_or(now), now),
                     missing.empty() ? "nobody has" : missing + " have");
}

std::vector<std::string> RecoveryOf(const Job& job, TimePoint now) {
  std::vector<std::string> all;
  if (job.record().returns.count > 0 && job.phase() < JobPhase::kRunning) {
    all.push_back(ReturnText(job, now));
  }
  for (const Member& member : job.membership().members()) {
    const std::optional<TimePoint>& away = job.membership().presence(member.id).away_since;
    if (!away.has_value()) continue;
    all.push_back(fmt::format("{} is waited for {}", member.Name(),
                              UntilText(*away, now, job.config().cluster.wait_for_server)));
  }
  if (job.views().forming()) all.push_back(ViewText(job, now));
  return all;
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
  status.recovers = RecoveryOf(job, now);
  for (const Member& m : job.membership().members()) {
    status.processes.push_back(ProcessOf(m, job, now));
  }
  status.tables = TablesOf(job.membership());
  AddChains(job, status);
  if (job.training() != nullptr) AddTraining(*job.training(), status);
  return status;
}

}  // namespace dt::scheduler
