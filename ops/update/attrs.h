// Converts an optimizer to the attributes of an `update` or `update_rows` node, and back.
#pragma once

#include "common/specs/attrs.h"
#include "common/specs/optimizer.h"

namespace dt {

// The optimizer's name and numbers, under their names in the job file.
Attrs OptimizerAttrs(const OptimizerSpec& spec);
// REQUIRES: `attrs` was made by OptimizerAttrs. Settings for rows get their defaults.
OptimizerSpec OptimizerFromAttrs(const Attrs& attrs);
// Also includes the settings for rows of tables: l2, l2_by_gap, clip_row_norm; and `scheduled`.
Attrs RowOptimizerAttrs(const OptimizerSpec& spec, bool scheduled);
OptimizerSpec RowOptimizerFromAttrs(const Attrs& attrs);

}  // namespace dt
