// `dovetail checkpoint list|verify|inspect`.
#include <map>

#include "cli/commands.h"
#include "cli/outcome.h"
#include "common/base/text.h"
#include "common/config/load_job.h"
#include "common/dense/dense_file.h"
#include "common/rows/rows_reader.h"
#include "common/storage/json_file.h"
#include "scheduler/checkpoint/checkpoint_store.h"

namespace dt::cli {
namespace {

int List(const CommandLine& line) {
  const Result<JobConfig> job =
      LoadJob(line.job_path, {.overrides = line.overrides, .constants = false});
  if (!job.ok()) return EndWithError(line, "", job.status());
  const auto checkpoints = scheduler::ListCheckpoints(job->checkpoint.dir);
  if (checkpoints.empty()) Print("no complete checkpoint in {}\n", job->checkpoint.dir);
  for (const scheduler::CheckpointInfo& info : checkpoints) {
    Print("{}  {}  {}{}{}\n", info.folder, BytesText(info.bytes), info.written,
          info.best ? "  best" : "", info.status.ok() ? "" : "  " + ToText(info.status));
  }
  return 0;
}

int Verify(const CommandLine& line) {
  const Status status = scheduler::VerifyCheckpoint(line.checkpoint);
  if (!status.ok()) return EndWithError(line, "", status);
  Print("{}: every file agrees with its digest\n", line.checkpoint);
  return 0;
}

struct Contents {
  scheduler::Manifest manifest;
  RowsHeader header;
  std::map<TableId, std::pair<uint64_t, uint64_t>> tables;  // (rows, bytes) by table.
  uint64_t dense_arrays = 0, dense_values = 0;
};

// Counts the rows one by one, because the files do not store their number.
Result<Contents> ContentsOf(const std::string& folder) {
  Contents contents;
  DT_TRY(contents.manifest, scheduler::ReadManifest(folder));
  DT_TRY(contents.header, ReadRowsHeader(folder));
  DT_TRY_STATUS(ForEachRow(folder, [&](const SavedRow& row) {
    auto& [rows, bytes] = contents.tables[row.table];
    ++rows;
    bytes += sizeof(row.key) + row.record.size();
    return OkStatus();
  }));
  DT_TRY(const auto arrays, ReadDenseArrays(folder));
  contents.dense_arrays = arrays.size();
  for (const DenseArray& array : arrays) contents.dense_values += array.values.size();
  return contents;
}

void PrintContents(const Contents& contents) {
  const scheduler::Manifest& manifest = contents.manifest;
  Print("job {}, step {}, written {}\n", manifest.job, contents.header.step, manifest.written);
  Print("{}, {}\n", Counted(contents.header.shards, "shard"), Counted(manifest.slices, "slice"));
  for (const RowsHeader::Table& t : contents.header.tables) {
    const auto at = contents.tables.find(t.id);
    const auto [rows, bytes] = at == contents.tables.end() ? std::pair{0ul, 0ul} : at->second;
    Print("table {}: {} of {} and {} of optimizer state, {}\n", t.name, Counted(rows, "row"),
          Counted(t.dim, "value"), t.state, BytesText(bytes));
  }
  Print("dense: {}, {}\n", Counted(contents.dense_arrays, "array"),
        Counted(contents.dense_values, "value"));
  for (const CheckpointFile& file : manifest.files) {
    Print("file {}  {}\n", file.name, BytesText(file.bytes));
  }
}

void PrintContentsJson(const Contents& contents) {
  Json tables = Json::object(), files = Json::array();
  for (const RowsHeader::Table& t : contents.header.tables) {
    const auto at = contents.tables.find(t.id);
    const auto [rows, bytes] = at == contents.tables.end() ? std::pair{0ul, 0ul} : at->second;
    tables[t.name] = {{"rows", rows}, {"bytes", bytes}, {"dim", t.dim}, {"state", t.state}};
  }
  for (const CheckpointFile& file : contents.manifest.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  }
  const Json json = {
      {"job", contents.manifest.job},
      {"step", contents.header.step},
      {"written", contents.manifest.written},
      {"shards", contents.header.shards},
      {"slices", contents.manifest.slices},
      {"tables", std::move(tables)},
      {"model", Json::parse(contents.manifest.model, nullptr, false)},
      {"dense", {{"arrays", contents.dense_arrays}, {"values", contents.dense_values}}},
      {"files", std::move(files)}};
  Print("{}\n", PrintableJson(json));
}

int Inspect(const CommandLine& line) {
  const Result<Contents> contents = ContentsOf(line.checkpoint);
  if (!contents.ok()) return EndWithError(line, "", contents.status());
  if (line.json) {
    PrintContentsJson(*contents);
  } else {
    PrintContents(*contents);
  }
  return 0;
}

}  // namespace

int RunCheckpoint(const CommandLine& line) {
  if (line.command == "checkpoint list") return List(line);
  return line.command == "checkpoint verify" ? Verify(line) : Inspect(line);
}

}  // namespace dt::cli
