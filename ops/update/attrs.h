// An optimizer as attributes of an `update` or `update_rows` node, and back.
#pragma once

#include "common/specs/attrs.h"
#include "common/specs/optimizer.h"

namespace dt {

// The optimizer's name and its numbers, as the job file calls them.
Attrs OptimizerAttrs(const OptimizerSpec& spec);
// REQUIRES: `attrs` made by OptimizerAttrs. What concerns rows only has its default.
OptimizerSpec OptimizerFromAttrs(const Attrs& attrs);
// The same with what concerns rows of tables: l2, l2_by_gap, clip_row_norm; and `scheduled`.
Attrs RowOptimizerAttrs(const OptimizerSpec& spec, bool scheduled);
OptimizerSpec RowOptimizerFromAttrs(const Attrs& attrs);

}  // namespace dt
