// The content of tables in figures: counts, and the checksum of row_record.h.
#pragma once

#include <span>
#include <vector>

#include "common/cluster/table_report.h"
#include "server/shard/shard.h"

namespace dt::server {

// One report per table, summed over the shards. `tables` are those of the shards, in their order.
std::vector<TableReport> ReportTables(std::span<const TableSpec> tables,
                                      std::span<const Shard> shards);
// Adds a row that is not in memory, unless it has expired.
void AddRowBelow(const EmbeddingTable& table, Key key, std::span<const std::byte> record,
                 std::span<TableReport> reports);
// Counts of the shards whose chains end here, without checksums, which need no look at the rows.
// Rows below memory are included, and so are expired rows that are not removed yet.
std::vector<TableReport> SizesOf(std::span<const TableSpec> tables, std::span<const Shard> shards);
// Adds counts and checksums, table by table. REQUIRES: both are of the same tables.
void AddReports(std::vector<TableReport>& to, std::span<const TableReport> more);

}  // namespace dt::server
