// An optimizer as attributes of an `update` or `update_rows` node, and back.
#pragma once

#include <string_view>

#include "common/specs/attrs.h"
#include "common/specs/optimizer.h"

namespace dt {

// Every field that dense updates read, under its name in the job file.
Attrs OptimizerAttrs(const OptimizerSpec& spec);
// REQUIRES: `attrs` made by OptimizerAttrs. Fields that concern tables only have their defaults.
OptimizerSpec OptimizerFromAttrs(const Attrs& attrs);
// The same with what concerns rows of tables: l2, l2_by_gap, clip_row_norm; and `scheduled`.
Attrs RowOptimizerAttrs(const OptimizerSpec& spec, bool scheduled);
OptimizerSpec RowOptimizerFromAttrs(const Attrs& attrs);
// True if this is an optimizer's name in OptimizerAttrs.
bool IsOptimizer(std::string_view name);

}  // namespace dt
