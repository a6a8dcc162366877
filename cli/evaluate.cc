// `dovetail eval` and `dovetail predict`: a checkpoint on data, in one process.
#include "cli/commands.h"
#include "cli/local_job.h"
#include "cli/outcome.h"
#include "cli/summary.h"
#include "common/config/load_job.h"

namespace dt::cli {
namespace {

// How a job is trained does not matter to what its checkpoint predicts: one worker has all dense
// parameters, which every checkpoint holds as such.
void EvaluateHere(JobConfig& job) {
  const auto forget = [](Device& device) {
    if (device == Device::kPs) device = Device::kAuto;
  };
  job.train.staleness = 0;
  job.train.cached_rows = 0;
  forget(job.optimizer.device);
  for (NodeConfig& node : job.model.nodes) forget(node.device);
  std::erase_if(job.parallel.place, [](const PlaceRule& rule) {
    return rule.of == Placed::kWeights && rule.device == Device::kPs;
  });
  job.observe.trace.reset();  // No step is trained; what a training recorded stays.
}

}  // namespace

int RunEvaluate(const CommandLine& line, StopSignals& signals) {
  Result<JobConfig> job = LoadJob(line.job_path, {.overrides = line.overrides, .auto_slices = 1});
  if (!job.ok()) return EndWithError(line, "", job.status());
  if (line.command == "predict") {
    job->data.test = {line.data_path};
    job->data.labels_optional = true;
  }
  EvaluateHere(*job);
  const TimePoint begin = SystemClock().Now();
  JobResult result = RunLocalJob(*job, {.goal = scheduler::Goal::kEvaluate,
                                        .checkpoint = line.checkpoint,
                                        .predictions_path = line.out_path,
                                        .stop = signals.token()});
  result.seconds_total = SecondsBetween(begin, SystemClock().Now());
  if (result.status.ok()) {
    PrintSummary(result);
    if (!line.out_path.empty()) Print("predictions: {}\n", line.out_path);
  }
  return EndJob(line, result, signals);
}

}  // namespace dt::cli
