// The planner's input, and its report to people. Every pass gets the request.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/config/data_stats.h"
#include "common/config/job_config.h"
#include "common/device/devices.h"
#include "common/graph/graph.h"
#include "common/profile/device_profile.h"
#include "common/specs/column.h"
#include "scheduler/place/place_items.h"

namespace dt::scheduler {

// The processes on one machine, which share its cores.
struct MachineShare {
  uint32_t servers = 1, workers = 1, cores = 1;
};

// Predicted time of a step of the whole job, in seconds. The planner compares parts of it when it
// chooses devices; the total is for people.
//
//   step = messages + max(worker + exchange, servers, machine)
//
// Without overlap, workers wait while servers work: `worker + exchange + servers` then replaces the
// first two.
struct StepTime {
  double worker = 0;    // Computing and copying of a worker that has its machine to itself.
  double exchange = 0;  // Exchange of row gradients among workers.
  double servers = 0;   // The servers' work on tables, all servers at once.
  double messages = 0;  // Waiting of a worker for answers of servers and for other workers.
  double machine = 0;   // The work of all processes on a machine, divided among its cores.
  double step = 0;
};

// For people: where nodes were placed, and why. It is no part of a plan.
struct PlacementReport {
  bool automatic = false;  // Nodes without a tag or rule were placed to make the step short.
  uint32_t slices = 1;  // Number of slices that a worker computes in a step, one after the other.
  Placement placement;  // The placement of one slice, with its share of the step's nodes.
  std::map<std::string, std::string, std::less<>> why;  // A few words for each slice node.
  double accelerator_bytes = 0;  // Largest memory that the plan uses on an accelerator.
  double accelerator_limit = 0;  // The memory that an accelerator has.
  std::string constants;         // The source of the rates.
  std::string fallback;          // Why tags do not hold; empty if they do.
  StepTime step;                 // The time of a step of the whole job.
  MachineShare machine;          // The machine that `step` was computed for.
  // A few words for each table whose location the job does not state.
  std::map<std::string, std::string, std::less<>> table_why;
};

struct PlanRequest {
  const JobConfig& job;
  std::vector<ColumnSpec> columns;  // The columns of the data set, in its order.
  uint32_t slices = 1;
  // The accelerator with the least memory; empty if some workers have none. See devices.h.
  std::optional<DeviceInfo> accelerator = {};
  DeviceProfile profile = DefaultEmulatedProfile(1);  // The rates of the workers' devices.
  uint32_t servers = 1, workers = 1;                  // The processes of the job.
  MachineShare machine = {};                          // The machine with the most processes.
  PlacementReport* report = nullptr;                  // Filled in if not null.
  std::string why_none = {};                          // Why there is no accelerator, if known.
  DataStats data_stats = {};  // Numbers of distinct keys per column, as far as known.
  // The tables of `device: auto` that are on workers. MakePlan chooses them.
  std::set<std::string, std::less<>> on_worker = {};
  uint32_t position = 0;  // The worker of a team whose plan is made, or shown.
  // By value of the parallel graph. MakePlan fills it in; empty for a team of one.
  std::vector<HeldGroups> held = {};

  uint32_t devices() const { return job.team_size(); }
};

}  // namespace dt::scheduler
