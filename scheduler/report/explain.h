// Explains a plan: where nodes run and why, and the cost in arithmetic, memory, rows and time.
#pragma once

#include <string>

#include "common/config/job_config.h"
#include "scheduler/plan/plan.h"

namespace dt::scheduler {

// Returns text of many lines.
std::string ExplainPlan(const Plan& plan, const JobConfig& job, const PlacementReport& report);
// One JSON object: `prediction`, `placement` (tables and nodes with their reasons), `lookups`.
std::string ExplainJson(const Plan& plan, const JobConfig& job, const PlacementReport& report);

}  // namespace dt::scheduler
