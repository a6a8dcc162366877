// The number of distinct keys in the columns of a training set, as printed by `dovetail data stats
// --json`. A job names the file in parallel.data_stats, so that the planner knows how many rows
// open tables will have.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "common/base/status.h"

namespace dt {

// Distinct keys by name of the column, for columns with keys; empty: unknown.
using DataStats = std::map<std::string, uint64_t, std::less<>>;

// Error: Invalid, with one problem per line.
Result<DataStats> ReadDataStats(const std::string& path);
// Parses text instead of a file; `file` is the name in problems.
Result<DataStats> ParseDataStats(const std::string& text, const std::string& file);

}  // namespace dt
