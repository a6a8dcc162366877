// The server role: joins the scheduler, holds the shards that it is given, and carries out its
// orders. From Open to the end of Run, the scheduler's signs of life bound every wait.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/config/job_config.h"
#include "common/net/socket.h"

namespace dt::server {

struct ServerOptions {
  const JobConfig& job;  // Outlives the server, as the network does.
  Network& network;
  std::string scheduler;  // The scheduler's endpoint.
  // Port 0: any free port; else the first of `executors` ports.
  std::string listen = "tcp://127.0.0.1:0";
  ProcessId id = {};                // The number to ask for; 0: any.
  uint32_t executors = 0;           // Number of threads; 0: as the job says.
  Network* data_network = nullptr;  // For the executors; null: `network`.
  // The workers are in this process: no log is kept, because it would outlive them.
  bool one_process = false;
};

// The number of threads that own shards, on a machine like this one. In one process the worker
// mostly waits while they work, so that they should be on all processors; otherwise the machine may
// have other servers, and workers.
uint32_t ExecutorsOf(const ServerConfig& config, bool one_process = false);

class Server {
 public:
  // Binds the endpoints. Errors name the address.
  static Result<std::unique_ptr<Server>> Open(const ServerOptions& options);
  virtual ~Server() = default;

  // Runs until the scheduler ends the job or `stop` is requested (Cancelled). OK: the job
  // completed.
  virtual Status Run(std::stop_token stop) = 0;
};

}  // namespace dt::server
