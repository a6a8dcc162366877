// The constants of columns: numbers of the training data that a column is standardised or cut by.
#include <algorithm>

#include "common/config/data_stats.h"
#include "common/config/read_sections.h"
#include "common/config/value_text.h"

namespace dt {
namespace {

constexpr std::string_view kMake = "dovetail data stats JOB.yaml --json > FILE";

// Cuts numbers into `bins` of about equally many samples. Bins that would be empty are joined; the
// least number has a bin of its own if it is in as many samples as a bin has.
std::vector<float> EdgesOf(const std::vector<float>& quantiles, uint32_t bins) {
  const auto above_least = std::ranges::upper_bound(quantiles, quantiles.front());
  std::vector<float> edges;
  if (above_least == quantiles.end()) return edges;
  for (uint32_t bin = 1; bin < bins; ++bin) {
    const float edge = std::max(*above_least, quantiles[bin * (kQuantilePoints - 1) / bins]);
    if (edges.empty() || edge > edges.back()) edges.push_back(edge);
  }
  return edges;
}

// Returns what is wrong, or "".
std::string Fill(const ColumnStats& stats, ColumnSpec& column) {
  const std::string numbers = NumbersText(column);
  if (!stats.numbers.empty() && stats.numbers != numbers) {
    return fmt::format("is of \"{}\", and here it is \"{}\"", stats.numbers, numbers);
  }
  if (column.standardise && stats.mean.has_value() && stats.deviation.has_value()) {
    column.mean = *stats.mean;
    column.deviation = *stats.deviation;
    return "";
  }
  if (column.quantiles > 0 && stats.quantiles.size() == kQuantilePoints) {
    column.edges = EdgesOf(stats.quantiles, column.quantiles);
    return "";
  }
  return "has no numbers of this column";
}

}  // namespace

std::string ConstantsText(const ColumnSpec& column) {
  if (column.quantiles > 0) return "edges " + ValueText(column.edges);
  return fmt::format("mean {}, deviation {}", column.mean, column.deviation);
}

void ReadConstants(const MapReader& in, DataConfig& data) {
  if (std::ranges::none_of(data.columns, &ColumnSpec::needs_constants)) return;
  DataStats stats;
  if (!data.stats.empty()) {
    Problems of_file;
    stats = ReadDataStats(data.stats, of_file);
    in.problems().Append(of_file);
    if (!of_file.empty()) return;
  }
  for (ColumnSpec& column : data.columns) {
    const std::string at = JoinPath("columns", column.name);
    if (!column.needs_constants() || in.problems().HasUnder(in.PathOf(at))) continue;
    const std::string key = JoinPath(at, column.standardise ? "standardise" : "quantiles");
    const auto report = [&](const std::string& text) {
      in.problems().Add(in.node()->MarkOf(key), in.PathOf(key), text);
    };
    if (data.stats.empty()) {
      report(fmt::format("needs data.stats, the file that this makes: {}", kMake));
      continue;
    }
    const std::string wrong = Fill(stats[column.name], column);
    if (!wrong.empty())
      report(fmt::format("{} {}: make it again with {}", data.stats, wrong, kMake));
  }
}

}  // namespace dt
