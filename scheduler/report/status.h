// The state of a running job for `dovetail status`, the page and Prometheus. Plain values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/cluster/job_result.h"
#include "common/control/reports.h"
#include "common/device/devices.h"

namespace dt::scheduler {

struct JobStatus {
  struct Process {
    std::string role;
    uint32_t id = 0;
    int64_t pid = 0;
    std::string host;
    double heartbeat_age = 0;  // Seconds.
    uint64_t step = 0;
    uint32_t shards = 0;  // Servers only.
    double cpu_seconds = 0;
    uint64_t peak_rss_bytes = 0, bytes_sent = 0, bytes_received = 0;
    std::optional<DeviceInfo> accelerator = {};  // Workers only.
    // Servers only: chains of which it is the head, the tail, the newcomer.
    uint32_t heads = 0, tails = 0, syncing = 0;
    bool draining = false;
    uint64_t kept_bytes = 0, copied_bytes = 0;  // As in ChainReport.
    std::string waits = {};  // Why a worker takes no part in training; empty if it does.
    std::vector<ThreadReport> threads = {};  // Executors of servers included.
  };
  // The chains of all shards.
  struct Shards {
    struct Copy {
      uint32_t shard = 0, from = 0, to = 0;
      uint64_t bytes = 0, rows = 0, rows_of_shard = 0;  // As in CopyReport; 0: not begun.
    };
    uint32_t count() const;        // Of shards.
    uint32_t count_short() const;  // Of those with fewer members than `replicas`.

    uint64_t map_version = 0;
    uint32_t replicas = 1;             // Members that a chain should have.
    std::vector<uint32_t> by_members;  // [n]: how many shards have n members.
    std::vector<Copy> copies;          // Under way.
    uint32_t copies_left = 0;          // Under way or still to come.
    uint64_t bytes_left = 0;           // Of these; roughly, as all below.
    std::optional<double> bytes_per_second, seconds_left;
    std::vector<std::string> lost;  // Servers without which the job went on, and why.
  };
  std::string job, phase;
  double seconds = 0;  // Since the scheduler's start.
  // The longest time between two turns of the scheduler's loop in the last minute.
  double longest_turn = 0;
  uint64_t epoch = 0, epochs = 0, step = 0, steps = 0;  // `epoch` counts from 1; 0 before training.
  uint64_t samples = 0;
  std::vector<std::string> losses;  // The names of the losses.
  LossMeans train;                  // Means over the epoch so far; empty before the first step.
  std::optional<double> samples_per_second, seconds_left;
  double learning_rate = 0;  // Current rate of the job's optimizer.
  float lr_scale = 1;
  std::string places;      // Where nodes and tables are; empty before the plan.
  std::string checkpoint;  // The newest checkpoint; empty if there is none.
  // Wall-clock times in seconds since 1970; set only by this run.
  std::optional<double> last_step_time, last_checkpoint_time;
  uint64_t malformed = 0;  // Number of malformed messages.
  // Sentences that say which processes the job waits for before it can go on, since when and until
  // when; empty while it goes on.
  std::vector<std::string> recovers;
  std::vector<Process> processes;
  std::optional<Shards> shards;                    // Empty before there is a map.
  std::map<std::string, JobResult::Table> tables;  // Without checksums.
  std::vector<JobResult::Evaluation> history;
  std::vector<JobResult::CurvePoint> curve;
  std::vector<JobResult::Event> events;
  std::optional<Status> outcome;  // Set once the job has ended; see JobResult::status.
};

std::string StatusJson(const JobStatus& status);
// In Prometheus' text format.
std::string StatusMetrics(const JobStatus& status);

}  // namespace dt::scheduler
