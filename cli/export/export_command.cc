// `dovetail export`: writes a checkpoint's tables and dense parameters for other programs.
//
// Arrays: table.NAME.keys u64 [n], table.NAME.values f32 [n, dim], and dense.NAME f32 with its own
// shape. The metadata describes how they predict (scheduler/checkpoint/model_json.h).
#include <algorithm>
#include <filesystem>
#include <map>

#include "cli/commands.h"
#include "cli/outcome.h"
#include "common/arrays/array_file.h"
#include "common/base/text.h"
#include "common/config/dense_tables.h"
#include "common/dense/dense_file.h"
#include "common/rows/rows_reader.h"
#include "scheduler/checkpoint/checkpoint_store.h"

namespace dt::cli {
namespace {

namespace fs = std::filesystem;

struct ExportedTable {
  SavedValues values;
  uint64_t rows = 0;
  size_t keys_array = 0;  // The next array contains its values.
};
using Exported = std::map<TableId, ExportedTable>;

Result<Exported> TablesToExport(const RowsHeader& header, const std::string& only) {
  Exported tables;
  std::vector<std::string> names;
  for (const RowsHeader::Table& table : header.tables) {
    // An asynchronous job also stores its dense values in tables; "dense.bin" contains them as
    // arrays.
    if (table.name == kDenseTable || table.name == kRunningTable) continue;
    names.push_back(table.name);
    if (only.empty() || only == table.name)
      tables.emplace(table.id, ExportedTable{SavedValues(table)});
  }
  if (!tables.empty() || only.empty()) return tables;
  return Invalid("the checkpoint has no table {}{}", only, DidYouMean(only, names));
}

// A number or a list of numbers, viewed as bytes.
template <class T>
std::span<const std::byte> BytesOf(std::span<T> values) {
  return std::as_bytes(values);
}

class Exporter {
 public:
  Exporter(const scheduler::Manifest& manifest, const CommandLine& line)
      : manifest_(manifest), folder_(line.checkpoint), line_(line) {}

  Status Go(const std::string& out) {
    DT_TRY(const RowsHeader header, ReadRowsHeader(folder_));
    DT_TRY(tables_, TablesToExport(header, line_.table));
    DT_TRY_STATUS(ForEachRow(folder_, [&](const SavedRow& row) {
      const auto table = tables_.find(row.table);
      if (table != tables_.end()) ++table->second.rows;
      return OkStatus();
    }));
    if (line_.table.empty()) {
      DT_TRY(dense_, ReadDenseArrays(folder_));
    }
    DT_TRY(const auto file,
           ArrayFile::Create(
               out, line_.format == "npz" ? ArrayFormat::kNpz : ArrayFormat::kSafetensors, Specs(),
               {{"about", fmt::format("dovetail, step {}", header.step)},
                {"job", manifest_.job},
                {"model", manifest_.model}}));
    DT_TRY_STATUS(WriteRows(*file));
    for (size_t i = 0; i < dense_.size(); ++i) {
      DT_TRY_STATUS(file->Append(2 * tables_.size() + i, BytesOf(std::span(dense_[i].values))));
    }
    return file->Finish();
  }

  void PrintSummary(const std::string& out) const {
    for (const auto& [id, t] : tables_) {
      Print("table {}: {} of {}\n", t.values.table().name, Counted(t.rows, "row"),
            Counted(t.values.table().dim, "value"));
    }
    if (line_.table.empty()) Print("dense arrays: {}\n", dense_.size());
    std::error_code ignored;
    Print("written: {}, {}\n", out, BytesText(fs::file_size(out, ignored)));
  }

 private:
  std::vector<ArraySpec> Specs() {
    std::vector<ArraySpec> specs;
    for (auto& [id, t] : tables_) {
      t.keys_array = specs.size();
      specs.push_back(
          {"table." + t.values.table().name + ".keys", ArraySpec::Type::kU64, {t.rows}});
      specs.push_back({"table." + t.values.table().name + ".values",
                       ArraySpec::Type::kF32,
                       {t.rows, t.values.table().dim}});
    }
    for (const DenseArray& array : dense_) {
      specs.push_back({"dense." + array.name, ArraySpec::Type::kF32,
                       std::vector<uint64_t>(array.shape.begin(), array.shape.end())});
    }
    return specs;
  }
  Status WriteRows(ArrayFile& file) const {
    std::vector<float> values;
    return ForEachRow(folder_, [&](const SavedRow& row) -> Status {
      const auto at = tables_.find(row.table);
      if (at == tables_.end()) return OkStatus();
      const ExportedTable& t = at->second;
      values.resize(t.values.table().dim);
      DT_TRY_STATUS(t.values.Read(row.record, values));
      DT_TRY_STATUS(file.Append(t.keys_array, BytesOf(std::span(&row.key, 1))));
      return file.Append(t.keys_array + 1, BytesOf(std::span(values)));
    });
  }

  const scheduler::Manifest& manifest_;
  const std::string& folder_;
  const CommandLine& line_;
  Exported tables_;
  std::vector<DenseArray> dense_;
};

}  // namespace

int RunExport(const CommandLine& line) {
  const auto manifest = scheduler::ReadManifest(line.checkpoint);
  if (!manifest.ok()) return EndWithError(line, "", manifest.status());
  std::string out = line.out_path;
  if (out.empty()) {
    const fs::path folder = fs::weakly_canonical(line.checkpoint);
    out = fmt::format("{}-{}.{}", manifest->job, folder.filename().string(), line.format);
  }
  Exporter exporter(*manifest, line);
  const Status exported = exporter.Go(out);
  if (!exported.ok()) return EndWithError(line, "", exported);
  exporter.PrintSummary(out);
  return 0;
}

}  // namespace dt::cli
