// The sections of the job file that say how a job runs: init, train, cluster, checkpoint, observe,
// security. See job_config.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"

namespace dt {

// The first values of a job's tables and dense parameters, if they are another job's.
struct InitConfig {
  // A checkpoint's folder, with a slash in it, or the name of a job, whose newest one is meant; "":
  // none.
  std::string from;
  bool fresh_optimizer = false;   // Optimizer state begins anew; else it is taken, too.
  std::vector<std::string> only;  // Patterns of the names to take; empty: all.
  std::string arrays;             // A safetensors or npz file of dense parameters; "": none.
};

struct EarlyStopConfig {
  std::string metric = "valid.auc";  // Like PlateauConfig::metric.
  uint32_t patience = 2;             // Evaluations without gain before training stops.
};

// Steps of a job without an end.
inline constexpr Step kEndless = Step{1} << 62;

struct TrainConfig {
  uint32_t batch_size = 4096;
  uint32_t slices = 0;  // 0: auto (1 under `train`, cluster.workers otherwise).
  uint32_t epochs = 1;
  bool forever = false;      // A stream: the job waits for more when it has trained all.
  Step max_steps = 0;        // Limit for the whole job, with all resumed parts; 0: no limit.
  Step staleness = 0;        // In steps; kUnboundedStaleness: no bound.
  uint64_t cached_rows = 0;  // Rows that a worker keeps, with staleness.
  std::optional<EarlyStopConfig> early_stop;
  uint64_t evaluate_every = 0;  // In steps; 0: after every epoch.
  // Arithmetic of matrix products; becomes the attribute `math` of their operators.
  std::string math = "fp32";

  // Workers are asynchronous, and dense parameters are on servers.
  bool asynchronous() const { return staleness > 0; }
  // Of an epoch over so many training samples; `stripes` is empty, or has those of each stripe of
  // the data, in which case no slice of a step is larger than its part of the batch.
  uint64_t steps_per_epoch(uint64_t train_rows, std::span<const uint64_t> stripes = {}) const {
    const auto steps = [](uint64_t rows, uint64_t each) { return (rows + each - 1) / each; };
    uint64_t most = steps(train_rows, batch_size);
    for (const uint64_t rows : stripes) {
      most = std::max(most, steps(rows, std::max<uint64_t>(1, batch_size / stripes.size())));
    }
    return most;
  }
  // Of the whole job.
  Step steps(uint64_t per_epoch) const {
    const Step all = per_epoch * epochs;
    return max_steps == 0 ? all : std::min(all, max_steps);
  }
};

struct WorkerConfig {
  uint64_t memory_bytes = 4ull << 30;  // Host memory for tables that are placed automatically.
};

struct ServerConfig {
  uint64_t memory_bytes = 8ull << 30;
  uint32_t executors = 0;  // 0: auto.
  std::string dir;         // The parent of the servers' directories; default <run_dir>.
};

// The device of a worker that computes nodes placed on `gpu`.
enum class AcceleratorChoice : uint8_t { kAuto, kCpu, kCuda, kEmulated };
// An emulated GPU. Rates are per second; 0 means as fast as the CPU is.
struct EmulatedConfig {
  uint64_t memory_bytes = 4ull << 30;
  float flops = 0;
  // In bytes; the link has its rate in each direction.
  uint64_t memory_bandwidth = 0, link_bandwidth = 0;
};

struct ClusterConfig {
  uint32_t servers = 1, workers = 1, shards = 64;
  uint32_t replicas = 1;  // Servers that hold each shard.
  // Limit for the bytes per second that a server sends of shards that move; 0: none.
  uint64_t move_rate = 16 << 20;
  std::string scheduler = "tcp://127.0.0.1:0";
  Duration lease = std::chrono::seconds(3);
  Duration scheduler_outage = std::chrono::seconds(60);
  Duration wait_for_server = std::chrono::seconds(60);
  // How often `launch` restarts processes in total, and how often in a row the job returns to a
  // checkpoint.
  uint32_t restarts = 3;
  // Limit for all processes to join and read their data.
  Duration start_timeout = std::chrono::seconds(300);
  AcceleratorChoice devices = AcceleratorChoice::kAuto;
  EmulatedConfig emulated;
  WorkerConfig worker;
  ServerConfig server;
};

enum class Durability : uint8_t { kCheckpoint, kLog };
struct LogConfig {
  uint64_t max_bytes = 4ull << 30;  // A server with a longer log asks for a checkpoint.
  bool sync = false;                // Pushes are acknowledged only once they are on disk.
};

struct CheckpointConfig {
  std::string dir;           // Default runs/<job>/checkpoints.
  uint64_t every_steps = 0;  // 0: only at the end.
  Duration interval{};       // Time between checkpoints; 0: as `every_steps` says.
  uint32_t keep = 3;
  Durability durability = Durability::kCheckpoint;
  LogConfig log;
};

// The steps, both included, whose timeline is written.
struct TraceConfig {
  Step first = 0, last = 0;
};

struct ObserveConfig {
  std::string http = "127.0.0.1:0";  // "off": no web page.
  std::optional<TraceConfig> trace;
  bool log_json = false;
};

// Paths of key files (common/control/key_files.h).
struct CurveConfig {
  std::string key;  // The job's key pair; empty: <run_dir>/keys/job.key.
  // The key pair that this process connects with; empty: the job's.
  std::string own;
  std::vector<std::string> allow;  // Public keys that may connect, besides the job's.
};

struct SecurityConfig {
  CurveConfig curve;
  bool insecure = false;
};

}  // namespace dt
