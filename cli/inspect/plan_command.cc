// `dovetail plan`: shows what would run where, and why, and the graph after any pass.
#include <algorithm>

#include "cli/commands.h"
#include "cli/outcome.h"
#include "common/base/text.h"
#include "common/config/load_job.h"
#include "scheduler/passes/placement/devices.h"
#include "scheduler/plan/plan.h"
#include "scheduler/report/dump_plan.h"
#include "scheduler/report/explain.h"
#include "server/service/server.h"
#include "worker/data/dataset.h"
#include "worker/engine/device_kernels.h"

namespace dt::cli {
namespace {

// The columns from the job file if it determines them, otherwise from the data.
Result<std::vector<ColumnSpec>> ColumnsOf(const JobConfig& job) {
  std::vector<ColumnSpec> columns = ConfiguredColumns(job.data);
  if (!columns.empty()) return columns;
  TaskPool pool;
  auto data = worker::Dataset::Open(job.data, worker::Split::kTrain, pool);
  if (!data.ok()) {
    return WithHint(data.status(), "list data.columns in the job file to plan without the data");
  }
  return (*data)->columns();
}

scheduler::DumpFormat FormatOf(std::string_view name) {
  return name == "json"   ? scheduler::DumpFormat::kJson
         : name == "dot"  ? scheduler::DumpFormat::kDot
         : name == "html" ? scheduler::DumpFormat::kHtml
                          : scheduler::DumpFormat::kText;
}

// Prints the graph after the wanted passes. If a later pass fails, the passes before it are still
// shown; the error is returned unless the one wanted pass was printed.
Status PrintPasses(const CommandLine& line, scheduler::PlanRequest request) {
  const std::string_view wanted = line.pass.empty() ? "memory_plan" : std::string_view(line.pass);
  const bool all = wanted == "all";
  if (all && line.format != "text") {
    return WithHint(Invalid("--after all is for --format text"), "name one pass");
  }
  const std::vector<std::string> names = scheduler::PassNames();
  if (!all && std::ranges::count(names, wanted) == 0) {
    return Invalid("there is no pass \"{}\"; passes: {}", wanted, JoinText(names, ", "));
  }
  bool found = false;
  scheduler::PlacementReport report;
  request.report = &report;
  const auto print = [&](std::string_view pass, const Plan& plan) {
    if (!all && wanted != pass) return;
    found = true;
    if (all) Print("== after {}\n", pass);
    const std::string title = fmt::format("{} after {}", request.job.job, pass);
    // Only the last pass yields a plan that can be explained.
    const bool whole = pass == names.back();
    PrintText(DumpPlan(plan, FormatOf(line.format), title,
                       whole ? ExplainJson(plan, request.job, report) : "{}"));
  };
  const Result<Plan> plan = MakePlan(request, print);
  return found && !all ? OkStatus() : plan.status();
}

// Prints the processes that `launch` would start on this machine.
void PrintProcesses(const JobConfig& job) {
  const auto counted = [](uint32_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  const ClusterConfig& cluster = job.cluster;
  Print("launch starts {} processes: 1 scheduler, {} of {} each, {} of {} each\n",
        1 + cluster.servers + cluster.workers, counted(cluster.servers, "server"),
        counted(server::ExecutorsOf(cluster.server), "executor"),
        counted(cluster.workers, "worker"), counted(TaskPool().threads(), "thread"));
}

}  // namespace

int RunPlan(const CommandLine& line) {
  const Result<JobConfig> job = LoadJob(line.job_path, {.overrides = line.overrides});
  if (!job.ok()) return EndWithError(line, "", job.status());
  Result<std::vector<ColumnSpec>> columns = ColumnsOf(*job);
  if (!columns.ok()) return EndWithError(line, job->job, columns.status());
  scheduler::PlanRequest request{*job, *std::move(columns), job->train.slices};
  if (line.rank >= job->cluster.workers) {
    return EndWithError(line, job->job,
                        Invalid("--rank {}: there are {} workers, of ranks from 0", line.rank,
                                job->cluster.workers));
  }
  request.position = line.rank % request.devices();
  // Plans as if the workers ran on this machine.
  const Result<std::optional<DeviceInfo>> accelerator =
      worker::FindAcceleratorWithKernels(job->cluster);
  if (accelerator.ok()) {
    request.accelerator = *accelerator;
  } else {
    request.why_none = MessageOf(accelerator.status());
  }
  Result<DeviceProfile> profile =
      scheduler::ProfileOf(*job, request.accelerator, TaskPool().threads());
  if (!profile.ok()) return EndWithError(line, job->job, profile.status());
  request.profile = *std::move(profile);
  request.servers = job->cluster.servers;
  request.workers = job->cluster.workers;
  request.machine = {job->cluster.servers, job->cluster.workers, TaskPool().threads()};
  if (!job->data.stats.empty()) {
    Result<DataStats> stats = ReadDataStats(job->data.stats);
    if (!stats.ok()) return EndWithError(line, job->job, stats.status());
    request.data_stats = *std::move(stats);
  }
  if (!line.pass.empty() || line.format != "text") {
    const Status status = PrintPasses(line, request);
    return status.ok() ? 0 : EndWithError(line, job->job, status);
  }
  scheduler::PlacementReport report;
  request.report = &report;
  const Result<Plan> plan = scheduler::MakePlan(request);
  if (!plan.ok()) return EndWithError(line, job->job, plan.status());
  scheduler::WarnOfSharedRows(*plan);
  PrintProcesses(*job);
  PrintText(scheduler::ExplainPlan(*plan, *job, report));
  return 0;
}

}  // namespace dt::cli
