#include "common/profile/data_stats.h"

#include <optional>

#include <fmt/format.h>

#include "common/config/reader/values.h"
#include "common/config/reader/yaml_parse.h"

namespace dt {
namespace {

// Only the columns of "train" count, because other splits create no rows.
const ConfigNode* ColumnsOf(const ConfigNode& root) {
  const ConfigNode* const train = root.is_map() ? root.Find("train") : nullptr;
  return train != nullptr && train->is_map() ? train->Find("columns") : nullptr;
}

void ReadColumn(const ConfigNode& column, Problems& problems, DataStats& stats) {
  const ConfigNode* const name = column.is_map() ? column.Find("name") : nullptr;
  if (name == nullptr || !name->is_scalar()) {
    problems.Add(column.mark, "train.columns", "found a column without a name");
    return;
  }
  const ConfigNode* const distinct = column.Find("distinct");
  if (distinct == nullptr) return;  // The column contains numbers.
  const auto count = distinct->is_scalar() ? ParseUint(distinct->text) : std::nullopt;
  if (count.has_value()) {
    stats[name->text] = *count;
  } else {
    problems.Add(distinct->mark, "train.columns.distinct",
                 fmt::format("found {}, expected a whole number", Describe(*distinct)));
  }
}

// Accepts JSON, which is also YAML.
Result<DataStats> FromTree(const ConfigNode& root, const std::string& file, Problems& problems) {
  DataStats stats;
  if (problems.empty()) {
    const ConfigNode* const columns = ColumnsOf(root);
    if (columns == nullptr || !columns->is_list()) {
      problems.Add(root.mark, "",
                   fmt::format("found {} without train.columns, expected what dovetail data stats "
                               "--json prints",
                               Describe(root)));
    } else {
      for (const ConfigNode& column : columns->items) ReadColumn(column, problems, stats);
    }
  }
  DT_TRY_STATUS(problems.ToStatus(file));
  return stats;
}

}  // namespace

Result<DataStats> ReadDataStats(const std::string& path) {
  Problems problems;
  const ConfigNode root = ParseYamlFile(path, {}, "parallel.data_stats", problems);
  return FromTree(root, path, problems);
}

Result<DataStats> ParseDataStats(const std::string& text, const std::string& file) {
  Problems problems;
  const ConfigNode root = ParseYaml(text, file, 1, problems);
  return FromTree(root, file, problems);
}

}  // namespace dt
