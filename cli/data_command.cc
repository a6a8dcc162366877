// `dovetail data generate|convert|stats`.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "absl/container/flat_hash_set.h"
#include "cli/commands.h"
#include "cli/outcome.h"
#include "common/config/load_job.h"
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
  std::printf("%s: %llu rows, seed %llu\n", line.out_path.c_str(),
              static_cast<unsigned long long>(line.rows),
              static_cast<unsigned long long>(line.seed));
  const std::pair<const char*, const worker::SplitTruth&> splits[] = {
      {"train", truth->train}, {"valid", truth->valid}, {"test", truth->test}};
  for (const auto& [name, split] : splits) {
    std::printf("  %-5s %9llu rows, best possible AUC %.5f, logloss %.5f\n", name,
                static_cast<unsigned long long>(split.rows), split.auc, split.logloss);
  }
  return 0;
}

int Convert(const CommandLine& line, const JobConfig& job) {
  TaskPool pool;
  for (const auto& [split, name] : kSplits) {
    const auto data = Dataset::Open(job.data, split, pool);
    if (!data.ok()) return EndWithError(line, job.job, data.status());
    std::printf("%-5s %llu rows, %s in %.1f s, %llu skipped\n", name,
                static_cast<unsigned long long>((*data)->rows()),
                (*data)->open_stats().from_cache ? "cached" : "read", (*data)->open_stats().seconds,
                static_cast<unsigned long long>((*data)->open_stats().rows_skipped));
  }
  return 0;
}

// One pass over a split: what each column holds.
nlohmann::ordered_json StatsOf(const Dataset& data) {
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
    data.Gather(rows, batch);
    for (size_t c = 0; c < columns.size(); ++c) {
      for (const float value : batch.columns[c].floats) sums[c] += value;
      keys[c].insert(batch.columns[c].keys.begin(), batch.columns[c].keys.end());
      counts[c] += columns[c].is_keys() ? batch.columns[c].keys.size() : rows.size();
    }
  }
  nlohmann::ordered_json out = {{"rows", data.rows()},
                                {"columns", nlohmann::ordered_json::array()}};
  const double row_count = std::max(1.0, static_cast<double>(data.rows()));
  for (size_t c = 0; c < columns.size(); ++c) {
    nlohmann::ordered_json column = {{"name", columns[c].name}};
    if (columns[c].is_keys()) {
      column["keys"] = counts[c];
      column["distinct"] = keys[c].size();
      column["per_row"] = static_cast<double>(counts[c]) / row_count;
    } else {
      column["mean"] = sums[c] / row_count;
    }
    out["columns"].push_back(std::move(column));
  }
  return out;
}

void PrintStats(const std::string& split, const nlohmann::ordered_json& stats) {
  std::printf("%s: %llu rows\n", split.c_str(), stats["rows"].get<unsigned long long>());
  for (const auto& column : stats["columns"]) {
    const std::string name = column["name"];
    if (column.contains("mean")) {
      std::printf("  %-20s mean %g\n", name.c_str(), column["mean"].get<double>());
    } else {
      std::printf("  %-20s %llu distinct keys, %g per row\n", name.c_str(),
                  column["distinct"].get<unsigned long long>(), column["per_row"].get<double>());
    }
  }
}

int Stats(const CommandLine& line, const JobConfig& job) {
  TaskPool pool;
  nlohmann::ordered_json all;
  for (const auto& [split, name] : kSplits) {
    const auto data = Dataset::Open(job.data, split, pool);
    if (!data.ok()) return EndWithError(line, job.job, data.status());
    if ((*data)->rows() == 0) continue;
    all[name] = StatsOf(**data);
    if (!line.json) PrintStats(name, all[name]);
  }
  if (line.json) std::printf("%s\n", all.dump(2).c_str());
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
