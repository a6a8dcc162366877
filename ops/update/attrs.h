// An optimizer as attributes of an `update` node, and back.
#pragma once

#include "common/config/job_config.h"

namespace dt {

// Every field that dense updates read, under its name in the job file.
Attrs OptimizerAttrs(const OptimizerSpec& spec);
// REQUIRES: `attrs` made by OptimizerAttrs. Fields that concern tables only have their defaults.
OptimizerSpec OptimizerFromAttrs(const Attrs& attrs);

}  // namespace dt
