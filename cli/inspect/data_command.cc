// `dovetail data generate|convert|stats`.
#include "cli/commands.h"
#include "cli/outcome.h"
#include "common/config/load_job.h"
#include "common/storage/json_file.h"
#include "worker/data/dataset.h"
#include "worker/data/generate.h"
#include "worker/data/stats/split_stats.h"

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

// A number of a column's statistics as it is shown; blank if the column has none.
std::string Shown(const Json& column, const char* key) {
  if (!column.contains(key)) return "";
  const bool estimate =
      key == std::string_view("distinct") && column.contains("distinct_is_estimate");
  if (!column[key].is_number_integer()) return fmt::format("{:g}", column[key].get<double>());
  return fmt::format("{}{}", estimate ? "~" : "", column[key].get<int64_t>());
}

void PrintStats(const std::string& split, const Json& stats) {
  constexpr const char* kShown[] = {"missing", "distinct", "per_row",  "min",
                                    "max",     "mean",     "deviation"};
  Print("{}: {}\n", split, Counted(stats["rows"].get<uint64_t>(), "row"));
  std::string title = fmt::format("  {:<20}", "column");
  for (const char* key : kShown) title += fmt::format(" {:>11}", key);
  Print("{}\n", title);
  for (const auto& column : stats["columns"]) {
    std::string line = fmt::format("  {:<20}", column["name"].get<std::string>());
    for (const char* key : kShown) line += fmt::format(" {:>11}", Shown(column, key));
    Print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

int Stats(const CommandLine& line, const JobConfig& job) {
  if (job.data.stream.has_value()) {
    return EndWithError(line, job.job,
                        WithHint(Invalid("a stream has no training files to make statistics of"),
                                 "name a job over files with the same columns; a stream's job can "
                                 "use its statistics"));
  }
  TaskPool pool;
  Json all;
  for (const auto& [split, name] : kSplits) {
    Result<Json> stats = worker::StatsOf(job.data, split, pool);
    if (!stats.ok()) return EndWithError(line, job.job, stats.status());
    if (stats->is_null()) continue;
    all[name] = *std::move(stats);
    if (!line.json) PrintStats(name, all[name]);
  }
  if (line.json) Print("{}\n", PrintableJson(all));
  return 0;
}

}  // namespace

int RunData(const CommandLine& line) {
  if (line.command == "data generate") return Generate(line);
  const bool converts = line.command == "data convert";
  const Result<JobConfig> job =
      LoadJob(line.job_path, {.overrides = line.overrides, .constants = converts});
  if (!job.ok()) return EndWithError(line, "", job.status());
  return converts ? Convert(line, *job) : Stats(line, *job);
}

}  // namespace dt::cli
