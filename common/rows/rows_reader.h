// The rows of a checkpoint one after the other, whatever files hold them; for those who want them
// outside a server. Rows that are gone are not among them.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "common/rows/rows_header.h"

namespace dt {

struct SavedRow {
  ShardId shard;
  TableId table;
  Key key = 0;
  std::span<const std::byte> record;  // EmbeddingTable::CopyRecord's; lives until the visit ends.
};

// What the headers of all say; `holds`: all shards. DataLoss naming the folder or the shard
// that is missing.
Result<RowsHeader> ReadRowsHeader(const std::string& folder);

// Of each table ascending by shard and key, so that equal rows come in equal order wherever they
// lived. Stops at the first error, of its own (DataLoss, naming the folder) or of `visit`. `only`:
// of these tables; empty: of all.
using VisitRow = std::function<Status(const SavedRow& row)>;
Status ForEachRow(const std::string& folder, const VisitRow& visit,
                  std::span<const TableId> only = {});

// The values of a row of `table`. REQUIRES: out.size() == table.dim. DataLoss: another size.
Status ReadValues(const RowsHeader::Table& table, std::span<const std::byte> record,
                  std::span<float> out);

// <folder>/server-<id>/rows-<executor>, by name: each shard is in one of them.
std::vector<std::string> RowsFoldersIn(const std::string& folder);
// <folder>/worker-<rank>/rows-0: rows of all shards, of the tables that its header names; the
// files of servers have none of these.
std::vector<std::string> WorkerRowsFoldersIn(const std::string& folder);

}  // namespace dt
