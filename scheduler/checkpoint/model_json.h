// How a model predicts from its parameters, for programs other than this one: operators with all
// their attributes, what they read, tables with the first values of their rows. docs/export.md says
// what each part means.
#pragma once

#include <string>

#include "common/config/job_config.h"
#include "common/plan/plan.h"

namespace dt::scheduler {

// A JSON object as text. `plan`: after the pass `infer`, before anything is fused or placed.
std::string ModelJson(const Plan& plan, const JobConfig& job);

}  // namespace dt::scheduler
