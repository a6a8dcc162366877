// `dovetail train`: runs the whole job in one process.
#include <cstdio>

#include "cli/commands.h"
#include "cli/local_job.h"
#include "cli/outcome.h"
#include "cli/progress.h"
#include "cli/summary.h"
#include "common/base/log.h"
#include "common/config/load_job.h"

namespace dt::cli {

int RunTrain(const CommandLine& line, StopSignals& signals) {
  const Result<JobConfig> job =
      LoadJob(line.job_path, {.overrides = line.overrides, .auto_slices = 1});
  if (!job.ok()) return EndWithError(line, "", job.status());
  if (job->observe.log_json) SetLogFormat(LogFormat::kJson);
  const TimePoint begin = SystemClock().Now();
  ProgressPrinter progress(line);
  JobResult result = RunLocalJob(*job, {.resume = line.resume,
                                        .on_progress = [&](const auto& p) { progress(p); },
                                        .stop = signals.token()});
  progress.Finish();
  result.seconds_total = SecondsBetween(begin, SystemClock().Now());
  if (result.status.ok()) PrintSummary(result);
  return EndJob(line, result, signals);
}

}  // namespace dt::cli
