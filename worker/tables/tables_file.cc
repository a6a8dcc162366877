// Checkpoints of tables on the worker. They have the form of the servers' files
// (server/checkpoint), because a table may be elsewhere each time a job is resumed.
#include <algorithm>
#include <filesystem>
#include <tuple>

#include "common/base/folder.h"
#include "common/base/hash.h"
#include "common/rows/file_rows.h"
#include "common/rows/row_keys.h"
#include "common/rows/rows_reader.h"
#include "common/storage/file_digest.h"
#include "common/storage/rocksdb_rows.h"
#include "ops/update/update.h"
#include "worker/tables/worker_tables.h"

namespace dt::worker {
namespace {

namespace fs = std::filesystem;

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Status AddHeader(RowsDb& db, const RowsHeader& header) {
  const std::string text = HeaderText(header);
  std::unique_ptr<RowsDb::File> file = db.NewFile(text.size());
  DT_TRY_STATUS(file->Add(kHeaderKey, text));
  return db.Ingest(std::move(file));
}

// Writes the table as one sorted file.
Status AddTable(RowsDb& db, uint32_t shards, WorkerTable& table) {
  if (table.rows() == 0) return OkStatus();
  const TableId id = table.config().id;
  const std::span<const Key> keys = table.keys();
  std::vector<std::tuple<ShardId, Key, uint32_t>> order(table.rows());
  for (uint32_t number = 0; number < table.rows(); ++number) {
    order[number] = {ShardOf(id, keys[number], shards), keys[number], number};
  }
  std::ranges::sort(order);
  std::vector<uint32_t> numbers(table.rows());
  std::ranges::transform(order, numbers.begin(), [](const auto& row) { return std::get<2>(row); });
  std::unique_ptr<RowsDb::File> file = db.NewFile(table.bytes());
  DT_TRY_STATUS(table.VisitRows(numbers, [&](Key key, std::span<const std::byte> record) {
    return file->Add(RowKey(ShardOf(id, key, shards), id, key).text(), TextOf(record));
  }));
  return db.Ingest(std::move(file));
}

Result<std::vector<CheckpointFile>> FilesIn(const std::string& folder, const std::string& name) {
  std::vector<CheckpointFile> files;
  DT_TRY(const std::vector<fs::path> paths, ListFolder(folder + "/" + name));
  for (const fs::path& path : paths) {
    DT_TRY(const FileDigest digest, DigestOf(path.string()));
    files.push_back({name + "/" + path.filename().string(), digest.bytes, digest.digest});
  }
  std::ranges::sort(files, {}, &CheckpointFile::name);
  return files;
}

Status CheckTable(const RowsHeader& header, const WorkerTable& table) {
  const TableConfig& config = table.config();
  const auto saved = std::ranges::find(header.tables, config.id, &RowsHeader::Table::id);
  if (saved == header.tables.end()) {
    return Invalid("the checkpoint has no table {}", config.name);
  }
  if (saved->dim == config.dim && saved->state == table.state() &&
      saved->dtype == FloatFormat::kFp32) {
    return OkStatus();
  }
  return WithHint(
      Invalid("table {} was saved with dim {}, {} floats of optimizer state, as {}; the job has "
              "dim {} and {}, as fp32",
              config.name, saved->dim, saved->state, NameOf(saved->dtype), config.dim,
              table.state()),
      "use the dim, optimizer and dtype of the saved job, or start anew");
}

}  // namespace

Result<std::vector<CheckpointFile>> WorkerTables::Save(const CheckpointLocation& location) const {
  if (tables_.empty()) return std::vector<CheckpointFile>();
  RowsHeader header{.step = location.step, .shards = location.shards};
  for (uint32_t s = 0; s < location.shards; ++s) header.holds.emplace_back(s);
  for (const auto& table : tables_) {
    const TableConfig& config = table->config();
    header.tables.push_back({config.id, config.dim, table->state(), config.name});
  }
  const std::string own = fmt::format("worker-{}", location.rank);
  const std::string draft = fmt::format("{}/{}/draft", location.folder, own);
  const std::string name = own + "/rows-0";
  std::error_code error;
  // The order may have been given before, to other workers or to this one.
  fs::remove_all(location.folder + "/" + own, error);
  if (error) return Unavailable("removing {}: {}", location.folder, error.message());
  {
    DT_TRY(const auto db, RowsDb::Create(draft, {}));
    DT_TRY_STATUS(AddHeader(*db, header));
    for (const auto& table : tables_) DT_TRY_STATUS(AddTable(*db, location.shards, *table));
    DT_TRY_STATUS(db->Checkpoint(location.folder + "/" + name));
  }
  fs::remove_all(draft, error);
  if (error) return Unavailable("removing {}: {}", draft, error.message());
  return FilesIn(location.folder, name);
}

Status WorkerTables::Load(const std::string& folder, Step step) {
  if (tables_.empty()) return OkStatus();
  DT_TRY(const RowsHeader header, ReadRowsHeader(folder));
  if (header.step != step) {
    return WithWhere(DataLoss("it was saved at step {}, not at {}", header.step, step), folder);
  }
  std::vector<TableId> ids;
  for (const auto& table : tables_) {
    DT_TRY_STATUS(WithWhere(CheckTable(header, *table), folder));
    ids.push_back(table->config().id);
    table->Clear();
  }
  DT_TRY_STATUS(ForEachRow(
      folder,
      [&](const SavedRow& row) {
        const auto at = std::ranges::find(ids, row.table);
        return tables_[static_cast<size_t>(at - ids.begin())]->Restore(row.key, row.record);
      },
      ids));
  for (const auto& table : tables_) DT_TRY_STATUS(table->FinishRestore());
  return OkStatus();
}

Status WorkerTables::LoadParts(const std::string& folder, const TakenParts& parts) {
  if (tables_.empty()) return OkStatus();
  RowsHeader header;
  if (!folder.empty()) {
    DT_TRY(header, ReadRowsHeader(folder));
  }
  for (const auto& table : tables_) {
    table->Clear();
    const TakenTable* const taken = parts.Find(table->config().id);
    if (taken == nullptr) continue;
    const Status loaded = taken->file.empty()
                              ? LoadRowsOf(folder, header, *taken, *table)
                              : WithWhere(LoadFileRows(*taken, *table), taken->file);
    DT_TRY_STATUS(loaded);
    DT_TRY_STATUS(table->FinishRestore());
  }
  return OkStatus();
}

TakenRows::Options WorkerTables::OptionsFor(const TakenTable& taken,
                                            const WorkerTable& table) const {
  const TableConfig& config = table.config();
  std::vector<float> state(table.state());
  InitState(config.optimizer, state);
  return {.table = {config.id, config.dim, table.state(), config.name},
          .initial_state = std::move(state),
          .keep_state = taken.state && taken.file.empty(),
          .steps_before = steps_before_};
}

Status WorkerTables::LoadRowsOf(const std::string& folder, const RowsHeader& header,
                                const TakenTable& taken, WorkerTable& table) const {
  const auto saved = std::ranges::find(header.tables, taken.id, &RowsHeader::Table::id);
  if (saved == header.tables.end() || saved->dim != table.config().dim) {
    return WithWhere(Internal("table {} is not there", table.config().name), folder);
  }
  const SavedValues values(*saved);
  TakenRows rows(OptionsFor(taken, table));
  const auto take = [&](const SavedRow& row) -> Status {
    DT_TRY(const std::span<const std::byte> record, rows.Take(values, row.record));
    return table.Restore(row.key, record);
  };
  return ForEachRow(folder, take, std::span(&taken.id, 1));
}

Status WorkerTables::LoadFileRows(const TakenTable& taken, WorkerTable& table) const {
  const TableConfig& config = table.config();
  DT_TRY(const FileRows file, FileRows::Open(taken.file, config.name, config.dim));
  TakenRows rows(OptionsFor(taken, table));
  return file.ForEach([](Key) { return true; },
                      [&](Key key, std::span<const float> values) -> Status {
                        const Status restored = table.Restore(key, rows.Make(values));
                        return restored.code() == StatusCode::kDataLoss
                                   ? Malformed("{}", MessageOf(restored))
                                   : restored;
                      });
}

}  // namespace dt::worker
