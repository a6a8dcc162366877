// A tiny job whose roles are threads of this process: a real scheduler, real servers and workers,
// connected by inproc sockets (workers among themselves by Gloo over loopback).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/cluster/job_result.h"
#include "common/device/accelerator.h"
#include "common/metrics/metrics.h"
#include "common/net/socket.h"
#include "common/plan/plan.h"
#include "scheduler/state/job_options.h"
#include "test/support/tiny_job.h"

namespace dt::test {

struct JobShape {
  uint32_t servers = 1, workers = 1, slices = 1;
  std::string staleness = "0";
  uint32_t rows = TinyJobOptions().rows, epochs = 3, batch_size = 256;
  std::string executors = "auto";  // Number of executors of each server, or "auto".
  std::string more;                // Further YAML at the top level of the job file.
  std::vector<std::string> set;    // Overrides of keys, as given with --set.
  std::string loss = TinyJobOptions().loss;
};

struct JobRun {
  JobResult result;
  Plan plan;  // The last plan that the scheduler made.
  std::vector<Status> roles;
};

// Options of the scheduler; by default it trains from step 0.
struct RunOptions {
  scheduler::Goal goal = scheduler::Goal::kTrain;
  std::string resume = "never";
  std::string checkpoint;
  // Makes the network that workers use to reach servers, on top of the job's; null: the job's own.
  std::function<std::unique_ptr<Network>(Network&)> data_network = nullptr;
  // One accelerator per worker; workers beyond the list use what cluster.devices says.
  std::vector<Accelerator*> accelerators = {};
};

// Jobs of the same name in the same folder share their checkpoints.
JobRun RunJob(const TempFolder& folder, const std::string& name, const JobShape& shape,
              const RunOptions& options = {});
void ExpectCompleted(const JobRun& run);
// A team adds up the parts of a batch in another order, so digits at the end may differ.
void ExpectNear(const LossMetrics& of_team, const LossMetrics& of_one);

}  // namespace dt::test
