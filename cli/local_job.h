// The whole job in this process: one scheduler, one server, one worker, over inproc://. The same
// code as in separate processes.
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
  std::string checkpoint;        // Goal::kEvaluate
  std::string predictions_path;  // Goal::kEvaluate: also written as CSV.
  std::function<void(const scheduler::Progress&)> on_progress;
  std::stop_token stop;
};

// Runs to the end. cluster.servers and cluster.workers of the job are taken as 1.
JobResult RunLocalJob(const JobConfig& job, const LocalJobOptions& options);

}  // namespace dt::cli
