// What the columns of a split hold: the output of `dovetail data stats`, and the constants of
// columns that are standardised or cut at quantiles (common/config/data_stats.h reads them).
#pragma once

#include "common/base/status.h"
#include "common/config/data_config.h"
#include "common/runtime/task_pool.h"
#include "common/storage/json_file.h"
#include "worker/data/dataset.h"

namespace dt::worker {

// {"rows", "columns": [{"name", …}]}; null if the split has no samples. Of a column with keys:
// "keys", "distinct", "per_row", and "missing" where the key of an empty cell tells. Of numbers:
// "numbers" (NumbersText), "missing", and where some are there "distinct", "min", "max", "mean",
// "deviation" and, if the job cuts the column at quantiles, these per mille, "quantiles", in one
// text. They are the numbers before they are standardised or cut into bins, so that no constants
// are needed. "distinct" is exact up to about a million keys, or 65,000 numbers; else
// "distinct_is_estimate" is there. Columns that are made from bins are left out.
//
// Makes a data cache of its own, because it reads empty cells as such. A column takes 20 MB of
// memory at most. Errors: those of Dataset::Open.
Result<Json> StatsOf(const DataConfig& config, Split split, TaskPool& pool);

}  // namespace dt::worker
