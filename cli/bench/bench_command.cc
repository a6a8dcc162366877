// `dovetail bench store|disk|transport|train|plan|devices`.
#include "cli/bench/bench.h"
#include "cli/bench/bench_peer.h"
#include "cli/commands.h"
#include "cli/local_job.h"
#include "cli/outcome.h"
#include "common/config/load_job.h"
#include "common/runtime/task_pool.h"
#include "common/storage/files.h"

namespace dt::cli {
namespace {

int MeasureBudget(const CommandLine& line, StopSignals& signals) {
  const Result<std::vector<BenchCase>> cases = BenchBudget(
      {.job_path = line.job_path, .overrides = line.overrides, .stop = signals.token()});
  if (!cases.ok()) return EndWithError(line, "", cases.status());
  PrintBench(*cases, line.json);
  return 0;
}

// Trains the job once in this process and prints rates and resource use of the whole run.
int BenchTrain(const CommandLine& line, StopSignals& signals) {
  if (line.job_path.empty()) {
    return EndWithError(line, "", Invalid("bench train needs a job file, or --budget"));
  }
  const Result<JobConfig> job =
      LoadJob(line.job_path, {.overrides = line.overrides, .auto_slices = 1});
  if (!job.ok()) return EndWithError(line, "", job.status());
  const JobResult result = RunLocalJob(*job, {.stop = signals.token()});
  if (!result.status.ok()) return EndWithError(line, job->job, result.status);
  const double samples = std::max(1.0, static_cast<double>(result.samples));
  double cpu_seconds = 0;
  for (const JobResult::RoleReport& role : result.roles) {
    if (role.usage.has_value()) cpu_seconds += role.usage->cpu_seconds;
  }
  PrintBench({{.name = job->job + ": training",
               .unit = "k samples/s",
               .runs = {samples / 1e3 / result.seconds}},
              {.name = job->job + ": samples per CPU-second",
               .unit = "k samples",
               .runs = {samples / 1e3 / std::max(cpu_seconds, 1e-9)}}},
             line.json);
  return 0;
}

// With --out FILE, writes a profile for parallel.profile.
int MeasureDevices(const CommandLine& line) {
  DeviceProfile profile = DefaultEmulatedProfile(TaskPool().threads());
  std::vector<BenchCase> cases;
  if (Status s = BenchProcessor(cases, profile); !s.ok()) return EndWithError(line, "", s);
  if (Status s = BenchAccelerator(cases, profile); !s.ok()) PrintError(s);
  BenchServer(cases, profile);
  PrintBench(cases, line.json);
  if (line.out_path.empty()) return 0;
  if (Status s = WriteWholeFile(line.out_path, ToYaml(profile)); !s.ok()) {
    return EndWithError(line, "", s);
  }
  if (!line.json) Print("{}: {}\n", line.out_path, SourceText(profile));
  return 0;
}

}  // namespace

int RunBench(const CommandLine& line, StopSignals& signals) {
  if (line.command == "bench train") {
    return line.budget ? MeasureBudget(line, signals) : BenchTrain(line, signals);
  }
  if (line.command == "bench devices") return MeasureDevices(line);
  if (line.command == "bench peer") return RunBenchPeer(line, signals);
  std::vector<BenchCase> cases;
  if (line.command == "bench store") cases = BenchStore();
  if (line.command == "bench disk") cases = BenchDisk();
  if (line.command == "bench transport") cases = BenchTransport();
  if (line.command == "bench plan") cases = BenchPlan();
  PrintBench(cases, line.json);
  return 0;
}

}  // namespace dt::cli
