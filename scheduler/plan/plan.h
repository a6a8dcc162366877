// The planner: from a job and the columns of its data to the plan that every worker runs. Pure
// functions over values; nothing here runs a kernel or touches a socket.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/config/job_config.h"
#include "common/device/devices.h"
#include "common/graph/plan.h"

namespace dt::scheduler {

struct PlanRequest {
  const JobConfig& job;
  std::vector<ColumnSpec> columns;  // Of the data set, in its order.
  uint32_t slices = 1;
  bool has_accelerator = true;  // All workers have one, a card or an emulated one.
  // Of the workers that have one, in rank order; fewer than workers: some have none. An emulated
  // one is also there where cluster.devices is auto and no card works: for nodes that are on `gpu`
  // by name.
  std::vector<DeviceInfo> accelerators = {};
};

// Error: Invalid or NotYet. One problem reads "node "x": …" with file:line as its place; several
// are one line each.
Result<Plan> MakePlan(const PlanRequest& request);

// The graph after one pass, for people.
struct PassDump {
  std::string pass;
  std::string text, dot, json;
};
// As many passes as succeed; their error, if any, is MakePlan's.
Result<std::vector<PassDump>> DumpPasses(const PlanRequest& request);

// What runs where and why, and what it costs: arithmetic, memory and rows per slice. Many lines.
std::string ExplainPlan(const Plan& plan, const JobConfig& job);

}  // namespace dt::scheduler
