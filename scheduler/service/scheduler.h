// The scheduler as a process runs it: Job on a socket, timers and the disk.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "common/cluster/job_result.h"
#include "common/config/job_config.h"
#include "common/net/socket.h"
#include "scheduler/job/job_environment.h"
#include "scheduler/job/job_options.h"
#include "scheduler/job/progress.h"

namespace dt::scheduler {

struct SchedulerOptions {
  const JobConfig& job;
  Network& network;
  std::string listen;  // "tcp://127.0.0.1:0", "inproc://scheduler".
  Goal goal = Goal::kTrain;
  std::string resume =
      "never";  // never; auto: the newest checkpoint of the job, if any; or a folder.
  std::string checkpoint = {};  // For Goal::kEvaluate: the folder of the checkpoint.
  // For Goal::kTrain: when this is the job's only scheduler, before anybody can find it.
  std::function<void()> on_begin = {};
  int process_ends = -1;  // The pipe of common/control/process_end.h; -1: there is none.
  // On the loop's thread, at most four times a second.
  std::function<void(const Progress&)> on_progress = {};
  // Called on a thread of its own. Empty: PlanOf.
  std::function<Result<MadePlan>(const PlanInput&)> planner = {};
};

class Scheduler {
 public:
  // Binds, reads the checkpoint to begin with, raises the term, writes <run_dir>/run.json. Errors:
  // Invalid (another job's checkpoint), DataLoss (a damaged one), Unavailable (port, disk, another
  // scheduler of the same job).
  static Result<std::unique_ptr<Scheduler>> Open(SchedulerOptions options);
  virtual ~Scheduler() = default;

  // What servers and workers connect to. Any thread.
  virtual const std::string& endpoint() const = 0;
  // Where a browser finds the status page; empty: there is none.
  virtual std::string page() const = 0;
  // Until the job has ended and all processes know it, or a few seconds after its end. A stop
  // request stops the job cleanly at the next step boundary, with a checkpoint if any are made
  // during training. Once.
  virtual JobResult Run(std::stop_token stop) = 0;
};

}  // namespace dt::scheduler
