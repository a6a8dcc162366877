// Describes to other programs how a model predicts from its parameters: operators with all
// attributes, their inputs, and tables with the initial values of their rows. docs/export.md
// explains every part.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/config/job_config.h"
#include "common/plan/plan.h"

namespace dt::scheduler {

// Returns a JSON object. `plan`: the plan after the pass `infer`, before any node is fused or
// placed.
std::string ModelJson(const Plan& plan, const JobConfig& job);

// Gives columns the constants that they have in `model`, of the checkpoint `folder`: means,
// deviations and edges of quantiles. Errors: Invalid, if it lacks one; Malformed, if it is no JSON.
Status TakeConstants(const std::string& model, const std::string& folder,
                     std::vector<ColumnSpec>& columns);

}  // namespace dt::scheduler
