#include "common/config/data_stats.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "common/base/text.h"
#include "common/config/reader/values.h"
#include "common/config/reader/yaml_parse.h"
#include "common/config/value_text.h"

namespace dt {
namespace {

// Only the columns of "train" count, because other splits create no rows.
const ConfigNode* ColumnsOf(const ConfigNode& root) {
  const ConfigNode* const train = root.is_map() ? root.Find("train") : nullptr;
  return train != nullptr && train->is_map() ? train->Find("columns") : nullptr;
}

bool IsFloat(double value) { return std::abs(value) <= std::numeric_limits<float>::max(); }

// Reads the values of one column, and reports those that are not what they should be.
class ColumnReader {
 public:
  ColumnReader(const ConfigNode& column, Problems& problems)
      : column_(column), problems_(problems) {}

  void Read(ColumnStats& stats) const {
    if (const ConfigNode* numbers = column_.Find("numbers")) return ReadNumbers(*numbers, stats);
    const ConfigNode* const distinct = column_.Find("distinct");
    if (distinct == nullptr) return;
    const auto count = distinct->is_scalar() ? ParseUint(distinct->text) : std::nullopt;
    if (!count.has_value()) Report(*distinct, "distinct", "a whole number");
    stats.distinct = count.value_or(0);
  }

 private:
  void ReadNumbers(const ConfigNode& numbers, ColumnStats& stats) const {
    if (!numbers.is_scalar() || numbers.text.empty()) {
      return Report(numbers, "numbers", "a text that says which numbers they are");
    }
    stats.numbers = numbers.text;
    stats.mean = Number("mean", std::numeric_limits<float>::lowest());
    stats.deviation = Number("deviation", 0);
    const ConfigNode* const quantiles = column_.Find("quantiles");
    if (quantiles == nullptr) return;
    for (const std::string_view text : SplitText(quantiles->text, ' ')) {
      const auto value = ParseFloat(text);
      if (value.has_value() && IsFloat(*value))
        stats.quantiles.push_back(static_cast<float>(*value));
    }
    if (stats.quantiles.size() != kQuantilePoints || !std::ranges::is_sorted(stats.quantiles)) {
      Report(*quantiles, "quantiles",
             fmt::format("a text of {} numbers that ascend", kQuantilePoints));
    }
  }

  std::optional<float> Number(std::string_view name, float least) const {
    const ConfigNode* const node = column_.Find(name);
    if (node == nullptr || node->is_null()) return std::nullopt;
    const auto value = node->is_scalar() ? ParseFloat(node->text) : std::nullopt;
    if (value.has_value() && IsFloat(*value) && *value >= least) return static_cast<float>(*value);
    Report(*node, name, least == 0 ? "a number of at least 0" : "a number");
    return std::nullopt;
  }

  void Report(const ConfigNode& found, std::string_view name, std::string_view expected) const {
    problems_.Add(found.mark, fmt::format("train.columns.{}", name),
                  fmt::format("found {}, expected {}", Describe(found), expected));
  }

  const ConfigNode& column_;
  Problems& problems_;
};

// Accepts JSON, which is also YAML.
DataStats FromTree(const ConfigNode& root, Problems& problems) {
  DataStats stats;
  if (!problems.empty()) return stats;
  const ConfigNode* const columns = ColumnsOf(root);
  if (columns == nullptr || !columns->is_list()) {
    problems.Add(root.mark, "",
                 fmt::format("found {} without train.columns, expected what dovetail data stats "
                             "--json prints",
                             Describe(root)));
    return stats;
  }
  for (const ConfigNode& column : columns->items) {
    const ConfigNode* const name = column.is_map() ? column.Find("name") : nullptr;
    if (name == nullptr || !name->is_scalar()) {
      problems.Add(column.mark, "train.columns", "found a column without a name");
    } else {
      ColumnReader(column, problems).Read(stats[name->text]);
    }
  }
  return stats;
}

}  // namespace

std::string NumbersText(const ColumnSpec& column) {
  std::string text = column.name_in_file();
  if (!column.clip.empty()) text += ", clip " + ValueText(column.clip);
  if (column.transform == "log") text += ", log";
  return text;
}

DataStats ReadDataStats(const std::string& path, Problems& problems) {
  Problems of_file;
  const ConfigNode root = ParseYamlFile(path, {}, "data.stats", of_file);
  DataStats stats = FromTree(root, of_file);
  problems.Append(of_file);
  return stats;
}

Result<DataStats> ReadDataStats(const std::string& path) {
  Problems problems;
  DataStats stats = ReadDataStats(path, problems);
  DT_TRY_STATUS(problems.ToStatus(path));
  return stats;
}

Result<DataStats> ParseDataStats(const std::string& text, const std::string& file) {
  Problems problems;
  const ConfigNode root = ParseYaml(text, file, 1, problems);
  DataStats stats = FromTree(root, problems);
  DT_TRY_STATUS(problems.ToStatus(file));
  return stats;
}

}  // namespace dt
