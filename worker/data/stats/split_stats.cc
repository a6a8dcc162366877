#include "worker/data/stats/split_stats.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/config/data_stats.h"
#include "common/config/load_job.h"
#include "worker/data/format/cell_values.h"
#include "worker/data/stats/number_summary.h"

namespace dt::worker {
namespace {

constexpr uint64_t kRowsAtOnce = 65536;
constexpr size_t kSampleMax = size_t{1} << 18;

// A column as it is read for statistics: numbers before they are standardised or cut into bins,
// empty cells as NaN.
ColumnSpec AsRead(ColumnSpec column) {
  if (column.is_binned()) {
    column.type = ColumnType::kFloat;
    column.hash = 0;
  }
  column.edges.clear();
  column.quantiles = 0;
  column.standardise = false;
  if (!column.is_keys()) column.fill = std::numeric_limits<float>::quiet_NaN();
  return column;
}

DataConfig AsRead(const DataConfig& config) {
  DataConfig read = config;
  read.columns.clear();
  const std::vector<ColumnSpec> columns = ConfiguredColumns(config);
  for (const ColumnSpec& column : columns) {
    const bool of_bins = std::ranges::any_of(column.of, [&](const std::string& name) {
      const auto of = std::ranges::find(columns, name, &ColumnSpec::name);
      return of != columns.end() && of->is_binned();
    });
    if (!of_bins) read.columns.push_back(AsRead(column));
  }
  return read;
}

// The keys of one column.
class KeySummary {
 public:
  explicit KeySummary(const ColumnSpec& column) : column_(column) {
    const SignedLogs logs;
    const CellConverter converter(column, logs);
    if (column.hash != 0 || column.is_sampled()) return;
    if (converter.kind() == CellConverter::Kind::kBucket) empty_ = converter.OfBucket(std::nullopt);
    if (column.type == ColumnType::kString) empty_ = converter.OfText("");
  }

  void Add(const BatchColumn& batch) {
    keys_ += batch.keys.size();
    for (const Key key : batch.keys) {
      distinct_.Add(key);
      missing_ += key == empty_ ? 1 : 0;
    }
    for (size_t i = 1; i < batch.offsets.size(); ++i) {
      missing_ += batch.offsets[i] == batch.offsets[i - 1] ? 1 : 0;
    }
  }

  void Put(uint64_t rows, Json& out) const {
    out["keys"] = keys_;
    PutDistinct(distinct_, out);
    out["per_row"] = static_cast<double>(keys_) / static_cast<double>(rows);
    if (column_.is_ragged() || empty_.has_value()) out["missing"] = missing_;
  }

  static void PutDistinct(const DistinctCount& distinct, Json& out) {
    out["distinct"] = distinct.count();
    if (!distinct.is_exact()) out["distinct_is_estimate"] = true;
  }

 private:
  const ColumnSpec& column_;
  std::optional<Key> empty_;  // The key of an empty cell, if it has one of its own.
  uint64_t keys_ = 0, missing_ = 0;
  DistinctCount distinct_;
};

// One text, because a file of many columns would have too many values.
std::string QuantilesText(const NumberSummary& numbers) {
  std::string text;
  for (const float quantile : numbers.Quantiles(kQuantilePoints)) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", quantile);
  }
  return text;
}

void PutNumbers(const NumberSummary& numbers, const ColumnSpec& column, bool has_quantiles,
                Json& out) {
  out["numbers"] = NumbersText(column);
  out["missing"] = numbers.missing();
  if (numbers.count() == 0) return;
  KeySummary::PutDistinct(numbers.distinct(), out);
  out["min"] = numbers.min();
  out["max"] = numbers.max();
  out["mean"] = numbers.mean();
  out["deviation"] = numbers.deviation();
  if (has_quantiles) out["quantiles"] = QuantilesText(numbers);
}

struct Summary {
  Summary(const ColumnSpec& column, bool quantiles)
      : has_quantiles(quantiles), keys(column), numbers(quantiles ? kSampleMax : 0) {}
  bool has_quantiles;
  KeySummary keys;
  NumberSummary numbers;
};

// Sums up the columns; `job` are those of the job file.
Result<Json> SumUp(const Dataset& data, const std::vector<ColumnSpec>& job) {
  std::vector<Summary> summaries;
  for (const ColumnSpec& column : data.columns()) {
    const auto same = std::ranges::find(job, column.name, &ColumnSpec::name);
    summaries.emplace_back(column, same != job.end() && same->quantiles > 0);
  }
  std::vector<uint64_t> rows;
  Batch batch;
  for (uint64_t begin = 0; begin < data.rows(); begin += kRowsAtOnce) {
    rows.clear();
    for (uint64_t r = begin; r < std::min(begin + kRowsAtOnce, data.rows()); ++r) rows.push_back(r);
    DT_TRY_STATUS(data.Gather(rows, batch));
    for (size_t c = 0; c < summaries.size(); ++c) {
      summaries[c].keys.Add(batch.columns[c]);
      for (const float value : batch.columns[c].floats) summaries[c].numbers.Add(value);
    }
  }
  Json out = {{"rows", data.rows()}, {"columns", Json::array()}};
  for (size_t c = 0; c < summaries.size(); ++c) {
    const ColumnSpec& column = data.columns()[c];
    Json json = {{"name", column.name}};
    if (column.is_keys()) {
      summaries[c].keys.Put(data.rows(), json);
    } else {
      PutNumbers(summaries[c].numbers, column, summaries[c].has_quantiles, json);
    }
    out["columns"].push_back(std::move(json));
  }
  return out;
}

}  // namespace

Result<Json> StatsOf(const DataConfig& config, Split split, TaskPool& pool) {
  DT_TRY(const auto data, Dataset::Open(AsRead(config), split, pool));
  if (data->rows() == 0) return Json();
  return SumUp(*data, config.columns);
}

}  // namespace dt::worker
