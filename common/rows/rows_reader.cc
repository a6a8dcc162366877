#include "common/rows/rows_reader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

#include "common/base/check.h"
#include "common/base/folder.h"
#include "common/rows/row_keys.h"
#include "common/rows/row_record.h"
#include "common/storage/rocksdb_rows.h"

namespace dt {
namespace {

struct OpenFolder {
  std::string path;
  std::unique_ptr<RowsDb> db;
  std::unique_ptr<RowsDb::Cursor> at;
};
struct OpenRows {
  RowsHeader header;                                      // The common content of all headers.
  std::map<ShardId, std::shared_ptr<OpenFolder>> shards;  // The folder of each shard.
  std::vector<std::shared_ptr<OpenFolder>> workers;
};

Result<RowsHeader> HeaderOf(RowsDb::Cursor& at) {
  DT_TRY_STATUS(at.Seek({}));
  if (!at.valid() || at.key() != kHeaderKey) return DataLoss("it has no header");
  return ParseRowsHeader(at.value());
}

Status Join(const RowsHeader& header, RowsHeader& all) {
  if (all.shards == 0) {
    all = header;
    all.positions.clear();
    return OkStatus();
  }
  if (header.step != all.step || header.shards != all.shards || header.tables != all.tables) {
    return DataLoss("its header does not agree with others");
  }
  all.holds.insert(all.holds.end(), header.holds.begin(), header.holds.end());
  return OkStatus();
}

// Opens a folder, with the cursor at its header.
Result<std::pair<std::shared_ptr<OpenFolder>, RowsHeader>> Open(const std::string& path) {
  auto file = std::make_shared<OpenFolder>();
  file->path = path;
  DT_TRY(file->db, RowsDb::OpenToRead(path));
  file->at = file->db->Read();
  Result<RowsHeader> header = HeaderOf(*file->at);
  if (!header.ok()) return WithWhere(header.status(), path);
  return std::pair(std::move(file), *std::move(header));
}

Status OpenOfServers(const std::string& folder, OpenRows& all) {
  const std::vector<std::string> paths = RowsFoldersIn(folder);
  if (paths.empty()) return DataLoss("checkpoint {} has no rows", folder);
  for (const std::string& path : paths) {
    DT_TRY(const auto opened, Open(path));
    const auto& [file, header] = opened;
    DT_TRY_STATUS(WithWhere(Join(header, all.header), path));
    for (const ShardId shard : header.holds) {
      if (all.shards.emplace(shard, file).second) continue;
      return WithWhere(DataLoss("shard {} is in two folders", shard.value()), path);
    }
  }
  std::ranges::sort(all.header.holds);
  for (uint32_t s = 0; s < all.header.shards; ++s) {
    if (all.shards.contains(ShardId(s))) continue;
    return WithWhere(DataLoss("the rows of shard {} are missing", s), folder);
  }
  return OkStatus();
}

Status OpenOfWorkers(const std::string& folder, OpenRows& all) {
  for (const std::string& path : WorkerRowsFoldersIn(folder)) {
    DT_TRY(const auto opened, Open(path));
    const auto& [file, header] = opened;
    const bool agrees =
        header.step == all.header.step && header.shards == all.header.shards &&
        std::ranges::all_of(header.tables, [&](const RowsHeader::Table& table) {
          return std::ranges::find(all.header.tables, table) != all.header.tables.end();
        });
    if (!agrees) return WithWhere(DataLoss("its header does not agree with others"), path);
    all.workers.push_back(file);
  }
  return OkStatus();
}

Result<OpenRows> OpenAll(const std::string& folder) {
  OpenRows all;
  DT_TRY_STATUS(OpenOfServers(folder, all));
  DT_TRY_STATUS(OpenOfWorkers(folder, all));
  return all;
}

// Visits all rows of the shard whose keys begin with `prefix`.
Status VisitPart(RowsDb::Cursor& at, const std::string& prefix, const VisitRow& visit) {
  const ShardId shard = ShardOfKey(prefix);
  TableId table;
  Step expire_before = 0;  // The current table's limit of expiry.
  DT_TRY_STATUS(at.Seek(prefix));
  while (at.valid() && at.key().starts_with(prefix)) {
    const std::string_view key = at.key(), value = at.value();
    if (key.size() != kStateKeyBytes && key.size() != RowKey::kBytes) {
      return DataLoss("it holds a key of {} bytes", key.size());
    }
    if (TableOfKey(key) != table) expire_before = 0;
    table = TableOfKey(key);
    if (key.size() == kStateKeyBytes) {
      DT_TRY(expire_before, ExpireBeforeOf(value));
    } else {
      const std::span<const std::byte> record = std::as_bytes(std::span(value));
      const std::optional<Step> last_push = LastPushOf(record);
      if (!last_push.has_value()) return DataLoss("a row has {} bytes", value.size());
      if (*last_push >= expire_before) {
        DT_TRY_STATUS(visit({shard, table, RowKey(key).key(), record}));
      }
    }
    DT_TRY_STATUS(at.Next());
  }
  return OkStatus();
}

Status VisitShard(const OpenFolder& file, ShardId shard, const VisitRow& visit,
                  std::span<const TableId> only) {
  if (only.empty()) return VisitPart(*file.at, ShardKey(shard), visit);
  for (const TableId table : only) {
    DT_TRY_STATUS(VisitPart(*file.at, StateKey(shard, table), visit));
  }
  return OkStatus();
}

std::vector<std::string> FoldersOf(const std::string& folder, std::string_view role) {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  for (const fs::path& process : ListFolderIfAny(folder)) {
    if (!process.filename().string().starts_with(role)) continue;
    for (const fs::path& rows : ListFolderIfAny(process)) {
      if (rows.filename().string().starts_with("rows-")) found.push_back(rows);
    }
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

std::vector<std::string> RowsFoldersIn(const std::string& folder) {
  return FoldersOf(folder, "server-");
}

std::vector<std::string> WorkerRowsFoldersIn(const std::string& folder) {
  return FoldersOf(folder, "worker-");
}

Result<RowsHeader> ReadRowsHeader(const std::string& folder) {
  DT_TRY(OpenRows all, OpenAll(folder));
  return std::move(all.header);
}

Status ForEachRow(const std::string& folder, const VisitRow& visit, std::span<const TableId> only) {
  DT_TRY(const OpenRows all, OpenAll(folder));
  for (const auto& [shard, file] : all.shards) {
    DT_TRY_STATUS(WithWhere(VisitShard(*file, shard, visit, only), file->path));
    for (const auto& worker : all.workers) {
      DT_TRY_STATUS(WithWhere(VisitShard(*worker, shard, visit, only), worker->path));
    }
  }
  return OkStatus();
}

SavedValues::SavedValues(RowsHeader::Table table) : table_(std::move(table)) {
  if (table_.missed.has_value()) missed_.emplace(table_.missed->optimizer);
}

Status SavedValues::ReadPushed(std::span<const std::byte> record, std::span<float> values,
                               std::span<float> state) const {
  DT_CHECK(values.size() == table_.dim && state.size() == table_.state);
  const size_t values_bytes = RowsBytes(table_.dtype, table_.dim, 1);
  const size_t bytes = values_bytes + table_.state * sizeof(float) + sizeof(Step);
  if (record.size() != bytes) {
    return DataLoss("a row of table {} has {} bytes instead of {}", table_.name, record.size(),
                    bytes);
  }
  DecodeRow(table_.dtype, record.data(), values);
  if (!state.empty()) {
    std::memcpy(state.data(), record.data() + values_bytes, state.size_bytes());
  }
  return OkStatus();
}

Status SavedValues::ReadNow(std::span<const std::byte> record, std::span<float> values,
                            std::span<float> state) const {
  DT_TRY_STATUS(ReadPushed(record, values, state));
  if (!missed_.has_value()) return OkStatus();
  missed_->Apply({*LastPushOf(record) + 1, table_.missed->now}, values, state);
  return OkStatus();
}

Status SavedValues::Read(std::span<const std::byte> record, std::span<float> out) const {
  std::vector<float> state(table_.state);
  return ReadNow(record, out, state);
}

}  // namespace dt
