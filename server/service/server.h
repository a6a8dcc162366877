// The server role: joins the scheduler, holds the shards that it is given, carries out its orders.
// Everything between Open and the end of Run is bounded in time by the scheduler's signs of life.
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
  std::string scheduler;                     // Endpoint.
  std::string listen = "tcp://127.0.0.1:0";  // Port 0: any; else the first of `executors` ports.
  ProcessId id = {};                         // The number to ask for; 0: any.
  uint32_t executors = 0;                    // Threads; 0: as the job says.
  Network* data_network = nullptr;           // Of the executors; null: `network`.
  bool one_process = false;  // With its workers: no log is kept, for it would outlive them.
};

// Threads that own shards, on a machine like this one.
uint32_t ExecutorsOf(const ServerConfig& config);

class Server {
 public:
  // Binds the endpoints. Errors name the address.
  static Result<std::unique_ptr<Server>> Open(const ServerOptions& options);
  virtual ~Server() = default;

  // Until the scheduler ends the job or `stop` is requested (Cancelled). OK: the job completed.
  virtual Status Run(std::stop_token stop) = 0;
};

}  // namespace dt::server
