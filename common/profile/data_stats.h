// How many distinct keys the columns of a training set have, as `dovetail data stats --json` prints
// it: read where a job names the file (parallel.data_stats), so that the planner knows how many
// rows open tables are going to have.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "common/base/status.h"

namespace dt {

// By name of the column, of those that hold keys; empty: nobody counted.
using DataStats = std::map<std::string, uint64_t, std::less<>>;

// Error: Invalid, a problem a line.
Result<DataStats> ReadDataStats(const std::string& path);
// The same from text; `file` is what problems name.
Result<DataStats> ParseDataStats(const std::string& text, const std::string& file);

}  // namespace dt
