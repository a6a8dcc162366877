#include "server/checkpoint/rows_reader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

#include "common/base/check.h"
#include "common/storage/rocksdb_rows.h"
#include "server/checkpoint/row_keys.h"
#include "server/life/row_life.h"

namespace dt::server {
namespace {

struct OpenFolder {
  std::string path;
  std::unique_ptr<RowsDb> db;
  std::unique_ptr<RowsDb::Cursor> at;
};
// The folder of each shard.
using FolderOfShard = std::map<ShardId, std::shared_ptr<OpenFolder>>;

Result<RowsHeader> HeaderOf(RowsDb::Cursor& at) {
  DT_TRY_STATUS(at.Seek({}));
  if (!at.valid() || at.key() != kHeaderKey) return DataLoss("it has no header");
  return ParseRowsHeader(at.value());
}

Status Join(const RowsHeader& header, RowsHeader& all) {
  if (all.shards == 0) {
    all = header;
    return OkStatus();
  }
  if (header.step != all.step || header.shards != all.shards || header.tables != all.tables) {
    return DataLoss("its header does not agree with others");
  }
  all.holds.insert(all.holds.end(), header.holds.begin(), header.holds.end());
  return OkStatus();
}

Result<RowsHeader> OpenAll(const std::string& folder, FolderOfShard& shards) {
  RowsHeader all;
  const std::vector<std::string> paths = RowsFoldersIn(folder);
  if (paths.empty()) return DataLoss("checkpoint {} has no rows", folder);
  for (const std::string& path : paths) {
    auto file = std::make_shared<OpenFolder>();
    file->path = path;
    DT_TRY(file->db, RowsDb::OpenToRead(path));
    file->at = file->db->Read();
    Result<RowsHeader> header = HeaderOf(*file->at);
    if (!header.ok()) return WithWhere(header.status(), path);
    DT_TRY_STATUS(WithWhere(Join(*header, all), path));
    for (const ShardId shard : header->holds) {
      if (shards.emplace(shard, file).second) continue;
      return WithWhere(DataLoss("shard {} is in two folders", shard.value()), path);
    }
  }
  std::ranges::sort(all.holds);
  for (uint32_t s = 0; s < all.shards; ++s) {
    if (shards.contains(ShardId(s))) continue;
    return WithWhere(DataLoss("the rows of shard {} are missing", s), folder);
  }
  return all;
}

Status VisitShard(RowsDb::Cursor& at, ShardId shard, const VisitRow& visit) {
  const std::string prefix = ShardKey(shard);
  TableId table;
  Step gone_before = 0;  // Of the table.
  DT_TRY_STATUS(at.Seek(prefix));
  while (at.valid() && at.key().starts_with(prefix)) {
    const std::string_view key = at.key(), value = at.value();
    if (key.size() != kStateKeyBytes && key.size() != RowKey::kBytes) {
      return DataLoss("it holds a key of {} bytes", key.size());
    }
    if (TableOfKey(key) != table) gone_before = 0;
    table = TableOfKey(key);
    if (key.size() == kStateKeyBytes) {
      DT_TRY(gone_before, RowLife::ExpireBeforeOf(value));
    } else {
      const std::span<const std::byte> record = std::as_bytes(std::span(value));
      const std::optional<Step> last_push = LastPushOf(record);
      if (!last_push.has_value()) return DataLoss("a row has {} bytes", value.size());
      if (*last_push >= gone_before) {
        DT_TRY_STATUS(visit({shard, table, RowKey(key).key(), record}));
      }
    }
    DT_TRY_STATUS(at.Next());
  }
  return OkStatus();
}

}  // namespace

std::vector<std::string> RowsFoldersIn(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  std::error_code error;
  for (const fs::directory_entry& server : fs::directory_iterator(folder, error)) {
    const bool ours = server.path().filename().string().starts_with("server-");
    if (!ours || !server.is_directory(error)) continue;
    for (const fs::directory_entry& rows : fs::directory_iterator(server.path(), error)) {
      if (rows.path().filename().string().starts_with("rows-")) found.push_back(rows.path());
    }
  }
  std::ranges::sort(found);
  return found;
}

Result<RowsHeader> ReadRowsHeader(const std::string& folder) {
  FolderOfShard shards;
  return OpenAll(folder, shards);
}

Status ForEachRow(const std::string& folder, const VisitRow& visit) {
  FolderOfShard shards;
  DT_TRY_STATUS(OpenAll(folder, shards).status());
  for (const auto& [shard, file] : shards) {
    DT_TRY_STATUS(WithWhere(VisitShard(*file->at, shard, visit), file->path));
  }
  return OkStatus();
}

Status ReadValues(const RowsHeader::Table& table, std::span<const std::byte> record,
                  std::span<float> out) {
  DT_CHECK(out.size() == table.dim);
  const size_t values_bytes = RowsBytes(table.dtype, table.dim, 1);
  const size_t bytes = values_bytes + table.state * sizeof(float) + sizeof(Step);
  if (record.size() != bytes) {
    return DataLoss("a row of table {} has {} bytes instead of {}", table.name, record.size(),
                    bytes);
  }
  DecodeRow(table.dtype, record.data(), out);
  return OkStatus();
}

}  // namespace dt::server
