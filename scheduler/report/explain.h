// What runs where and why, and what it costs: arithmetic, memory, rows and predicted time.
#pragma once

#include <string>

#include "common/config/job_config.h"
#include "scheduler/plan/plan.h"

namespace dt::scheduler {

// Many lines.
std::string ExplainPlan(const Plan& plan, const JobConfig& job, const PlacementReport& report);
// One JSON object: `prediction`, `placement` (tables and nodes with their reasons), `lookups`.
std::string ExplainJson(const Plan& plan, const JobConfig& job, const PlacementReport& report);

}  // namespace dt::scheduler
