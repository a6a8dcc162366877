// Statistics of a training set, as printed by `dovetail data stats --json`. A job names the file in
// data.stats: it tells the constants of columns, such as means, and how many rows open tables will
// have.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/config/reader/problems.h"
#include "common/specs/column.h"

namespace dt {

// Quantiles are per mille: from the least number to the greatest one.
inline constexpr size_t kQuantilePoints = 1001;

struct ColumnStats {
  uint64_t distinct = 0;  // Keys; 0: unknown, or the column has numbers.
  // These are set if the column holds numbers; they are empty if it has keys, or nothing.
  std::string numbers;  // NumbersText of the column that was read.
  std::optional<float> mean, deviation;
  std::vector<float> quantiles;  // Ascending [kQuantilePoints].
};
// By name of the column.
using DataStats = std::map<std::string, ColumnStats, std::less<>>;

// Names the numbers that a column's statistics describe: "price, clip [0, 100], log". Columns with
// the same text have the same numbers before they are standardised or cut into bins.
std::string NumbersText(const ColumnSpec& column);

// Error: Invalid, with one problem per line.
Result<DataStats> ReadDataStats(const std::string& path);
// Adds what is wrong with the file to `problems`, and what could be read is returned.
DataStats ReadDataStats(const std::string& path, Problems& problems);
// Parses text instead of a file; `file` is the name in problems.
Result<DataStats> ParseDataStats(const std::string& text, const std::string& file);

}  // namespace dt
