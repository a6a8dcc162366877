// The worker role: joins the job, opens its data, carries out the scheduler's orders until Stop.
#pragma once

#include <cstdint>
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
  std::string scheduler;               // Endpoint.
  std::string host = "127.0.0.1";      // This machine's address, for other workers to connect to.
  ProcessId id = {};                   // The number to ask for; 0: any.
  uint32_t threads = 0;                // For arithmetic and parsing; 0: as many as the machine has.
  bool one_process = false;            // The only worker, with all other roles in its process.
  bool evaluates = false;              // No step is trained: checkpoints need no optimizer state.
  std::string predictions_path = {};   // Evaluations are also written there, as CSV; empty: not.
  std::stop_token stop = {};           // Ends the joining; Run takes its own.
  std::stop_token hurry = {};          // The job is to stop: emulated speeds do not hold any more.
  Network* data_network = nullptr;     // To the servers; null: `network`.
  Accelerator* accelerator = nullptr;  // In place of what cluster.devices says.
};

// Used by one thread. Outlives nothing: the job and the network outlive it.
class Worker {
 public:
  // Joins. Errors: as ControlLink::Open.
  static Result<std::unique_ptr<Worker>> Open(const WorkerOptions& options);
  virtual ~Worker() = default;

  // Returns when the job ends: OK if it completed; Cancelled when stopped, here by `stop` or by the
  // scheduler; otherwise what made this worker or the job fail, which the scheduler has been told.
  virtual Status Run(std::stop_token stop) = 0;
};

}  // namespace dt::worker
