// The planner: from a job and the columns of its data to the plan that every worker runs. Pure
// functions over values; nothing here runs a kernel or touches a socket.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/config/job_config.h"
#include "common/device/devices.h"
#include "common/plan/plan.h"
#include "common/profile/data_stats.h"
#include "common/profile/device_profile.h"
#include "scheduler/place/place.h"

namespace dt::scheduler {

// The processes on one machine, which share its cores.
struct MachineShare {
  uint32_t servers = 1, workers = 1, cores = 1;
};

// How long a step of the whole job takes, by the model. Placement compares parts of it (place.cc,
// table_places.cc); the whole is for people. In seconds:
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
  bool automatic = false;  // Nodes of which nobody said anything went where it is best.
  uint32_t slices = 1;     // Of a worker, in each step: one after the other.
  Placement placement;     // Of one slice, and its share of the step's nodes.
  std::map<std::string, std::string, std::less<>> why;  // By slice node, a few words.
  double accelerator_bytes = 0, accelerator_limit = 0;  // Needed at most; there.
  std::string constants;                                // Where the rates come from.
  std::string fallback;                                 // Why tags do not hold; empty: they do.
  StepTime step;                                        // Of the whole job.
  MachineShare machine;                                 // What `step` is for.
  // By table of which the job does not say where it goes, a few words.
  std::map<std::string, std::string, std::less<>> table_why;
};

struct PlanRequest {
  const JobConfig& job;
  std::vector<ColumnSpec> columns;  // Of the data set, in its order.
  uint32_t slices = 1;
  // What every worker has, the smallest of them; nothing: some have none. See devices.h.
  std::optional<DeviceInfo> accelerator = {};
  DeviceProfile profile = DefaultEmulatedProfile(1);  // Of the workers' devices.
  MachineShare machine = {};                          // The machine that has the most processes.
  PlacementReport* report = nullptr;                  // Filled in, if it is given.
  std::string why_none = {};  // Why there is no accelerator, if that is known.
  DataStats data_stats = {};  // Of the columns.
  // Tables of `device: auto` that are on workers. MakePlan chooses them; see table_places.cc.
  std::set<std::string, std::less<>> on_worker = {};
};

// Error: Invalid or NotYet. One problem reads "node "x": …" with file:line as its place; several
// are one line each.
Result<Plan> MakePlan(const PlanRequest& request);

// The same, and calls seen(pass, plan) after each pass: with the graph alone, after `partition`
// with subgraphs too, after `schedule` with memory.
using SeenPass = std::function<void(std::string_view pass, const Plan& plan)>;
Result<Plan> MakePlan(const PlanRequest& request, const SeenPass& seen);

// All that `seen` may be called with, in their order.
std::vector<std::string> PassNames();

// A sentence for each table whose rows two or more columns of ids share because equal numbers are
// equal keys: mostly a slip, seldom a wish.
std::vector<std::string> SharedRows(const Plan& plan);
// Says them in the log.
void WarnOfSharedRows(const Plan& plan);

}  // namespace dt::scheduler
