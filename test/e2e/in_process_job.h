// A tiny job whose roles are threads of this process: real schedulers, servers and workers over
// inproc sockets (Gloo over loopback between workers).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/cluster/job_result.h"
#include "common/device/accelerator.h"
#include "common/net/socket.h"
#include "common/plan/plan.h"
#include "scheduler/job/job_options.h"
#include "test/support/tiny_job.h"

namespace dt::test {

struct Shape {
  uint32_t servers = 1, workers = 1, slices = 1;
  std::string staleness = "0";
  uint32_t rows = TinyJobOptions().rows, epochs = 3, batch_size = 256;
  std::string executors = "auto";  // Of a server.
  std::string more;                // Further top-level YAML.
  std::vector<std::string> set;    // Other values of its keys, as on the command line.
  std::string loss = TinyJobOptions().loss;
};

struct JobRun {
  JobResult result;
  Plan plan;  // The last that was made.
  std::vector<Status> roles;
};

// What the scheduler does other than training from step 0.
struct RunOptions {
  scheduler::Goal goal = scheduler::Goal::kTrain;
  std::string resume = "never";
  std::string checkpoint;
  // What workers reach servers through, over the job's network; null: that itself.
  std::function<std::unique_ptr<Network>(Network&)> data_network = nullptr;
  // By worker; the rest have what cluster.devices says.
  std::vector<Accelerator*> accelerators = {};
};

// Of jobs of one name in one folder the checkpoints are the same.
JobRun RunJob(const TempFolder& folder, const std::string& name, const Shape& shape,
              const RunOptions& options = {});
void ExpectCompleted(const JobRun& run);

}  // namespace dt::test
