// `dovetail data generate|convert|stats`.
#include "absl/container/flat_hash_set.h"
#include "cli/commands.h"
#include "cli/outcome.h"
#include "common/config/load_job.h"
#include "common/storage/json_file.h"
#include "worker/data/dataset.h"
#include "worker/data/generate.h"

namespace dt::cli {
namespace {

using worker::Dataset;
using worker::Split;

constexpr std::pair<Split, const char*> kSplits[] = {
    {Split::kTrain, "train"}, {Split::kValid, "valid"}, {Split::kTest, "test"}};

int Generate(const CommandLine& line) {
  TaskPool pool;
  const Result<worker::GenerateTruth> truth = worker::GenerateCriteo(
      {.rows = line.rows, .seed = line.seed, .out_dir = line.out_path}, pool);
  if (!truth.ok()) return EndWithError(line, "", truth.status());
  Print("{}: {} rows, seed {}\n", line.out_path, line.rows, line.seed);
  const std::pair<const char*, const worker::SplitTruth&> splits[] = {
      {"train", truth->train}, {"valid", truth->valid}, {"test", truth->test}};
  for (const auto& [name, split] : splits) {
    Print("  {:<5} {:>9} rows, best possible AUC {:.5f}, logloss {:.5f}\n", name, split.rows,
          split.auc, split.logloss);
  }
  return 0;
}

int Convert(const CommandLine& line, const JobConfig& job) {
  TaskPool pool;
  for (const auto& [split, name] : kSplits) {
    const auto data = Dataset::Open(job.data, split, pool);
    if (!data.ok()) return EndWithError(line, job.job, data.status());
    const worker::Dataset::OpenStats& stats = (*data)->open_stats();
    Print("{:<5} {}, {} in {:.1f} s, {} skipped\n", name, Counted((*data)->rows(), "row"),
          stats.from_cache ? "cached" : "read", stats.seconds, stats.rows_skipped);
  }
  return 0;
}

// Computes statistics of each column in one pass over a split.
Result<Json> StatsOf(const Dataset& data) {
  constexpr uint64_t kRowsAtOnce = 65536;
  const auto& columns = data.columns();
  std::vector<absl::flat_hash_set<Key>> keys(columns.size());
  std::vector<double> sums(columns.size(), 0.0);
  std::vector<uint64_t> counts(columns.size(), 0);
  std::vector<uint64_t> rows;
  worker::Batch batch;
  for (uint64_t begin = 0; begin < data.rows(); begin += kRowsAtOnce) {
    rows.clear();
    for (uint64_t r = begin; r < std::min(begin + kRowsAtOnce, data.rows()); ++r) rows.push_back(r);
    DT_TRY_STATUS(data.Gather(rows, batch));
    for (size_t c = 0; c < columns.size(); ++c) {
      for (const float value : batch.columns[c].floats) sums[c] += value;
      keys[c].insert(batch.columns[c].keys.begin(), batch.columns[c].keys.end());
      counts[c] += batch.columns[c].keys.size() + batch.columns[c].floats.size();
    }
  }
  Json out = {{"rows", data.rows()}, {"columns", Json::array()}};
  const double row_count = std::max(1.0, static_cast<double>(data.rows()));
  for (size_t c = 0; c < columns.size(); ++c) {
    Json column = {{"name", columns[c].name}};
    if (columns[c].is_keys()) {
      column["keys"] = counts[c];
      column["distinct"] = keys[c].size();
      column["per_row"] = static_cast<double>(counts[c]) / row_count;
    } else {
      column["mean"] = sums[c] / std::max(1.0, static_cast<double>(counts[c]));
    }
    out["columns"].push_back(std::move(column));
  }
  return out;
}

void PrintStats(const std::string& split, const Json& stats) {
  Print("{}: {}\n", split, Counted(stats["rows"].get<uint64_t>(), "row"));
  for (const auto& column : stats["columns"]) {
    const std::string name = column["name"];
    if (column.contains("mean")) {
      Print("  {:<20} mean {:g}\n", name, column["mean"].get<double>());
    } else {
      Print("  {:<20} {} distinct keys, {:g} per row\n", name, column["distinct"].get<uint64_t>(),
            column["per_row"].get<double>());
    }
  }
}

int Stats(const CommandLine& line, const JobConfig& job) {
  TaskPool pool;
  Json all;
  for (const auto& [split, name] : kSplits) {
    const auto data = Dataset::Open(job.data, split, pool);
    if (!data.ok()) return EndWithError(line, job.job, data.status());
    if ((*data)->rows() == 0) continue;
    Result<Json> stats = StatsOf(**data);
    if (!stats.ok()) return EndWithError(line, job.job, stats.status());
    all[name] = *std::move(stats);
    if (!line.json) PrintStats(name, all[name]);
  }
  if (line.json) Print("{}\n", PrintableJson(all));
  return 0;
}

}  // namespace

int RunData(const CommandLine& line) {
  if (line.command == "data generate") return Generate(line);
  const Result<JobConfig> job = LoadJob(line.job_path, {.overrides = line.overrides});
  if (!job.ok()) return EndWithError(line, "", job.status());
  return line.command == "data convert" ? Convert(line, *job) : Stats(line, *job);
}

}  // namespace dt::cli
