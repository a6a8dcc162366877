// The worker role: joins the job, opens its data, carries out the scheduler's orders until the job
// ends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/config/job_config.h"
#include "common/device/accelerator.h"
#include "common/net/socket.h"

namespace dt::worker {

struct WorkerOptions {
  const JobConfig& job;
  Network& network;
  std::string scheduler;           // The scheduler's endpoint.
  std::string host = "127.0.0.1";  // This machine's address, for other workers to connect to.
  ProcessId id = {};               // The number to ask for; 0: any.
  uint32_t threads = 0;      // Threads for arithmetic and parsing; 0: as many as the machine has.
  bool one_process = false;  // This is the only worker, and all other roles are in its process.
  bool evaluates = false;    // No step is trained, so that checkpoints need no optimizer state.
  // Evaluations are also written to this file, as CSV; empty: none.
  std::string predictions_path = {};
  std::stop_token stop = {};  // Ends the joining; Run takes its own token.
  std::stop_token skip_delays =
      {};  // Set at shutdown: the emulated device then stops imitating delays.
  Network* data_network = nullptr;              // To the servers; null: `network`.
  Accelerator* accelerator = nullptr;           // Used instead of what cluster.devices says.
  std::function<void(Step step)> on_step = {};  // Called after each step of training.
  bool more_threads = true;  // False: all but the pool's work is done on one thread.
};

// Used by one thread. The job and the network outlive it.
class Worker {
 public:
  // Joins the job. Errors: as for ControlLink::Open.
  static Result<std::unique_ptr<Worker>> Open(const WorkerOptions& options);
  virtual ~Worker() = default;

  // Returns when the job ends: OK if it completed; Cancelled if it was stopped, by `stop` or by the
  // scheduler; otherwise the failure of this worker or of the job. The scheduler has been told.
  virtual Status Run(std::stop_token stop) = 0;
};

}  // namespace dt::worker
