#include "scheduler/service/status_of.h"

#include <algorithm>
#include <set>
#include <span>

#include <fmt/format.h>

#include "common/base/written_paths.h"

namespace dt::scheduler {
namespace {

uint32_t ShardsOf(const ShardMap& map, ProcessId server) {
  uint32_t shards = 0;
  for (const Chain& chain : map.chains) {
    for (ProcessId member : chain) shards += member == server ? 1 : 0;
  }
  return shards;
}

// The host's name; with the address, too, where a process at another address has the same name.
std::string HostOf(const Member& member, const Membership& all) {
  const JoinMessage& join = member.join;
  const bool ambiguous = std::ranges::any_of(all.members(), [&](const Member& other) {
    return other.join.host == join.host && other.join.address != join.address;
  });
  return ambiguous && !join.address.empty() ? fmt::format("{} ({})", join.host, join.address)
                                            : join.host;
}

// "3 tables on servers, 1 on gpu", with those places that have any.
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
  status.places = job.places();
  status.checkpoint = WithWrittenPaths(job.last_checkpoint());
  status.events = job.events();
  if (!status.events.empty()) status.seconds = status.events.back().t;
  for (const Member& m : job.membership().members()) {
    const ProcessStats& stats = m.report.stats;
    status.processes.push_back({std::string(NameOf(m.role())), m.id.value(), m.join.pid,
                                HostOf(m, job.membership()), SecondsBetween(m.heard, now),
                                m.report.step, ShardsOf(job.map(), m.id), stats.cpu_seconds,
                                stats.peak_rss_bytes, stats.bytes_sent, stats.bytes_received});
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
