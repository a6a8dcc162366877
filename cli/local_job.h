// Runs the whole job in this process: one scheduler, one server and one worker, connected over
// inproc://. They run the same code as separate processes do.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "common/base/status.h"
#include "common/cluster/job_result.h"
#include "common/config/job_config.h"
#include "scheduler/service/scheduler.h"

namespace dt::cli {

struct LocalJobOptions {
  scheduler::Goal goal = scheduler::Goal::kTrain;
  std::string resume = "never";
  std::string checkpoint;        // For Goal::kEvaluate.
  std::string predictions_path;  // For Goal::kEvaluate: predictions are also written here, as CSV.
  std::function<void(const scheduler::Progress&)> on_progress;
  std::function<void(Step step)> on_step = {};  // See WorkerOptions.
  std::stop_token stop;
};

// Runs the job to its end. cluster.servers and cluster.workers of the job count as 1.
JobResult RunLocalJob(const JobConfig& job, const LocalJobOptions& options);

}  // namespace dt::cli
