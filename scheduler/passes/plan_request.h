// What the planner is asked, and what it tells people about its answer. Every pass gets the
// request.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/device/devices.h"
#include "common/profile/data_stats.h"
#include "common/profile/device_profile.h"
#include "common/specs/column.h"
#include "scheduler/place/place_items.h"

namespace dt::scheduler {

// The processes on one machine, which share its cores.
struct MachineShare {
  uint32_t servers = 1, workers = 1, cores = 1;
};

// How long a step of the whole job takes, by the model. The planner compares parts of it when it
// chooses devices; the whole is for people. In seconds:
//
//   step = messages + max(worker + exchange, servers, machine)
//
// Without overlap, servers work while the workers wait: then it is worker + exchange + servers.
struct StepTime {
  double worker = 0;    // A worker computes and copies, as if it had its machine to itself.
  double exchange = 0;  // A worker tells others gradients of rows.
  double servers = 0;   // Servers work for tables, each for its part.
  double messages = 0;  // A worker waits for answers of servers, and for the other workers.
  double machine = 0;   // The cores of a machine do the work of all processes on it.
  double step = 0;
};

// For people: where the nodes went and why. A plan carries none of it.
struct PlacementReport {
  bool automatic = false;  // Nodes without a tag or rule went where a step is shortest.
  uint32_t slices = 1;     // Slices that a worker computes in a step, one after the other.
  Placement placement;     // The placement of one slice and its share of the step's nodes.
  std::map<std::string, std::string, std::less<>> why;  // A few words for each slice node.
  double accelerator_bytes = 0;  // The most memory that the plan takes of an accelerator.
  double accelerator_limit = 0;  // The memory that an accelerator has.
  std::string constants;         // The source of the rates.
  std::string fallback;          // The reason why tags do not hold; empty if they do.
  StepTime step;                 // The time of a step of the whole job.
  MachineShare machine;          // The machine that `step` holds for.
  // A few words for each table of which the job does not say where it goes.
  std::map<std::string, std::string, std::less<>> table_why;
};

struct PlanRequest {
  const JobConfig& job;
  std::vector<ColumnSpec> columns;  // The columns of the data set, in its order.
  uint32_t slices = 1;
  // The smallest accelerator of any worker; nothing if some workers have none. See devices.h.
  std::optional<DeviceInfo> accelerator = {};
  DeviceProfile profile = DefaultEmulatedProfile(1);  // The rates of the workers' devices.
  MachineShare machine = {};                          // The machine that has the most processes.
  PlacementReport* report = nullptr;                  // Filled in, if it is given.
  std::string why_none = {};  // The reason why there is no accelerator, if it is known.
  DataStats data_stats = {};  // The numbers of distinct keys of columns, as far as known.
  // The tables of `device: auto` that are on workers. MakePlan chooses them.
  std::set<std::string, std::less<>> on_worker = {};
};

}  // namespace dt::scheduler
