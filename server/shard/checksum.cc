#include "server/shard/checksum.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/rows/row_record.h"

namespace dt::server {
namespace {

void AddCounts(const EmbeddingTable& table, TableReport& report) {
  report.pushes_refused += table.admission().refused();
  report.rows_expired += table.expiry().expired();
  report.rows_touched += table.tier_counts().touched;
  report.rows_fetched += table.tier_counts().fetched;
  report.rows_written += table.tier_counts().written;
}

void AddTable(const EmbeddingTable& table, TableReport& report) {
  std::vector<std::byte> record(table.record_bytes());
  const std::vector<KeyRow> rows = table.UnsortedRows();  // Sums do not depend on the order.
  for (const KeyRow& row : rows) {
    table.CopyRecord(row, record);
    AddRow(table.spec().id, row.key, record, report);
  }
  report.rows_in_memory += rows.size();
  AddCounts(table, report);
}

}  // namespace

void AddRowBelow(const EmbeddingTable& table, Key key, std::span<const std::byte> record,
                 std::span<TableReport> reports) {
  if (table.IsExpired(record)) return;
  const auto report = std::ranges::find(reports, table.spec().name, &TableReport::name);
  DT_CHECK(report != reports.end());
  AddRow(table.spec().id, key, record, *report);
  ++report->rows_on_disk;
}

std::vector<TableReport> ReportTables(std::span<const TableSpec> tables,
                                      std::span<const Shard> shards) {
  std::vector<TableReport> reports(tables.size());
  for (uint32_t t = 0; t < tables.size(); ++t) {
    reports[t].name = tables[t].name;
    for (const Shard& shard : shards) AddTable(shard.table(t), reports[t]);
  }
  return reports;
}

std::vector<TableReport> SizesOf(std::span<const TableSpec> tables, std::span<const Shard> shards) {
  std::vector<TableReport> sizes(tables.size());
  for (uint32_t t = 0; t < tables.size(); ++t) {
    sizes[t].name = tables[t].name;
    for (const Shard& shard : shards) {
      if (!shard.place().tail) continue;
      const EmbeddingTable& table = shard.table(t);
      const uint64_t below = table.tier_counts().below;
      sizes[t].rows += table.rows() + below;
      sizes[t].rows_in_memory += table.rows();
      sizes[t].rows_on_disk += below;
      sizes[t].bytes += (table.rows() + below) * (sizeof(Key) + table.record_bytes());
      AddCounts(table, sizes[t]);
    }
  }
  return sizes;
}

void AddReports(std::vector<TableReport>& to, std::span<const TableReport> more) {
  DT_CHECK(to.size() == more.size());
  for (size_t t = 0; t < to.size(); ++t) {
    DT_CHECK(to[t].name == more[t].name);
    to[t].rows += more[t].rows;
    to[t].rows_in_memory += more[t].rows_in_memory;
    to[t].rows_on_disk += more[t].rows_on_disk;
    to[t].bytes += more[t].bytes;
    to[t].pushes_refused += more[t].pushes_refused;
    to[t].rows_expired += more[t].rows_expired;
    to[t].rows_touched += more[t].rows_touched;
    to[t].rows_fetched += more[t].rows_fetched;
    to[t].rows_written += more[t].rows_written;
    to[t].checksum_low += more[t].checksum_low;
    to[t].checksum_high += more[t].checksum_high;
  }
}

}  // namespace dt::server
