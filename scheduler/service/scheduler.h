// The scheduler process: a Job connected to a socket, timers and the disk.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "common/cluster/job_result.h"
#include "common/config/job_config.h"
#include "common/net/socket.h"
#include "scheduler/job/progress.h"
#include "scheduler/state/job_environment.h"
#include "scheduler/state/job_options.h"

namespace dt::scheduler {

struct SchedulerOptions {
  const JobConfig& job;
  Network& network;
  std::string listen;  // For example "tcp://127.0.0.1:0" or "inproc://scheduler".
  Goal goal = Goal::kTrain;
  // "never"; "auto": the job's newest checkpoint, if any; or a folder.
  std::string resume = "never";
  std::string checkpoint = {};  // The checkpoint's folder, for Goal::kEvaluate.
  // For a run that begins. Called once this is known to be the job's only scheduler, before
  // processes can find it.
  std::function<void()> on_begin = {};
  bool follows_killed = false;  // The job's scheduler was killed just now; see find_run.h.
  int process_ends = -1;        // A pipe, see common/control/process_end.h; -1: none.
  // Called on the planner's thread with Taken::report, if the job begins with another's checkpoint.
  std::function<void(const std::vector<std::string>& report)> on_taken = {};
  // Called on the loop's thread, at most four times a second.
  std::function<void(const Progress&)> on_progress = {};
  // Called on a thread of its own. Empty: PlanOf is used.
  std::function<Result<MadePlan>(const PlanInput&)> planner = {};
};

class Scheduler {
 public:
  // Goes on with the run that another scheduler left, if a member of it speaks within a lease
  // (find_run.h); otherwise begins a run, from the checkpoint that `resume` names. Writes
  // <run_dir>/run.json. Errors: Invalid (checkpoint of another job), DataLoss (damaged checkpoint
  // or record), Unavailable (port, disk, or another scheduler of the same job).
  static Result<std::unique_ptr<Scheduler>> Open(SchedulerOptions options);
  // A run that has ended can be found by another scheduler until here.
  virtual ~Scheduler() = default;

  // The address that servers and workers connect to. Any thread.
  virtual const std::string& endpoint() const = 0;
  // The URL of the status page; empty if there is none.
  virtual std::string page() const = 0;
  // Runs until the job has ended and all processes know it, or a few seconds after its end. A stop
  // request ends the job at the next step boundary, with a checkpoint if the job makes any during
  // training. Call once.
  virtual JobResult Run(std::stop_token stop) = 0;
};

}  // namespace dt::scheduler
