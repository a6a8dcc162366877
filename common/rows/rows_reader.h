// Reads the rows of a checkpoint one after the other, from all its files, for use outside a server.
// Expired rows are left out.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "common/rows/missed_updates.h"
#include "common/rows/rows_header.h"

namespace dt {

struct SavedRow {
  ShardId shard;
  TableId table;
  Key key = 0;
  // As EmbeddingTable::CopyRecord writes it; valid until the visit ends.
  std::span<const std::byte> record;
};

// The common content of all headers; `holds` has all shards. DataLoss names the folder, or the
// shard that is missing.
Result<RowsHeader> ReadRowsHeader(const std::string& folder);

// Visits the rows of each table in ascending order of shard and key, so that equal rows come in the
// same order wherever they were stored. Stops at the first error: its own (DataLoss, with the
// folder) or that of `visit`. `only` limits the visit to these tables; empty: all tables.
using VisitRow = std::function<Status(const SavedRow& row)>;
Status ForEachRow(const std::string& folder, const VisitRow& visit,
                  std::span<const TableId> only = {});

// Reads the values of a table's rows as they are at the checkpoint's step: with `scope: dense` they
// have moved since their last push. Immutable.
class SavedValues {
 public:
  explicit SavedValues(RowsHeader::Table table);
  const RowsHeader::Table& table() const { return table_; }

  // REQUIRES: out.size() == table().dim. DataLoss: the record has another size.
  Status Read(std::span<const std::byte> record, std::span<float> out) const;
  // As they were after the row's last push, and the state then, table().state floats.
  Status ReadPushed(std::span<const std::byte> record, std::span<float> values,
                    std::span<float> state) const;
  // Both as they are at the checkpoint's step.
  Status ReadNow(std::span<const std::byte> record, std::span<float> values,
                 std::span<float> state) const;

 private:
  RowsHeader::Table table_;
  std::optional<MissedUpdates> missed_;
};

// <folder>/server-<id>/rows-<executor>, sorted by name: each shard is in one of them.
std::vector<std::string> RowsFoldersIn(const std::string& folder);
// <folder>/worker-<rank>/rows-0: rows of all shards, for the tables that its header names. The
// servers' files have no rows of these tables.
std::vector<std::string> WorkerRowsFoldersIn(const std::string& folder);

}  // namespace dt
