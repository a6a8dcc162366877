// What tables hold: counts, and the checksum of row_record.h.
#pragma once

#include <span>
#include <vector>

#include "common/cluster/table_report.h"
#include "server/shard/shard.h"

namespace dt::server {

// One report per table, over the shards. `tables` are those of the shards, in their order.
std::vector<TableReport> ReportTables(std::span<const TableSpec> tables,
                                      std::span<const Shard> shards);
// A row that is not in memory; nothing if it is gone.
void AddRowBelow(const EmbeddingTable& table, Key key, std::span<const std::byte> record,
                 std::span<TableReport> reports);
// The same without checksums, in no time, with the rows below: rows that are gone and not removed
// are counted.
std::vector<TableReport> SizesOf(std::span<const TableSpec> tables, std::span<const Shard> shards);
// Adds counts and checksums, table by table. REQUIRES: of the same tables.
void AddReports(std::vector<TableReport>& to, std::span<const TableReport> more);

}  // namespace dt::server
