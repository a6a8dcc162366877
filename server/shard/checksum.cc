#include "server/shard/checksum.h"

#include <cstring>

#include "common/base/check.h"

namespace dt::server {
namespace {

void AddTable(const EmbeddingTable& table, TableReport& report) {
  const std::vector<KeyRow> rows = table.UnsortedRows();  // Sums do not mind.
  const uint64_t id = table.spec().id.value();
  std::vector<std::byte> bytes(sizeof(id) + sizeof(Key) + table.record_bytes());
  std::memcpy(bytes.data(), &id, sizeof(id));
  for (const KeyRow& row : rows) {
    std::memcpy(bytes.data() + sizeof(id), &row.key, sizeof(row.key));
    table.CopyRecord(row, std::span(bytes).subspan(sizeof(id) + sizeof(row.key)));
    const Hash128 hash = HashBytes128(bytes);
    report.checksum_low += hash.low;
    report.checksum_high += hash.high;
  }
  report.rows += rows.size();
  report.rows_in_memory += rows.size();
  report.bytes += rows.size() * (sizeof(Key) + table.record_bytes());
}

}  // namespace

std::vector<TableReport> ReportTables(std::span<const TableSpec> tables,
                                      std::span<const Shard> shards) {
  std::vector<TableReport> reports(tables.size());
  for (uint32_t t = 0; t < tables.size(); ++t) {
    reports[t].name = tables[t].name;
    for (const Shard& shard : shards) AddTable(shard.table(t), reports[t]);
  }
  return reports;
}

void AddReports(std::vector<TableReport>& to, std::span<const TableReport> more) {
  DT_CHECK(to.size() == more.size());
  for (size_t t = 0; t < to.size(); ++t) {
    DT_CHECK(to[t].name == more[t].name);
    to[t].rows += more[t].rows;
    to[t].rows_in_memory += more[t].rows_in_memory;
    to[t].rows_on_disk += more[t].rows_on_disk;
    to[t].bytes += more[t].bytes;
    to[t].checksum_low += more[t].checksum_low;
    to[t].checksum_high += more[t].checksum_high;
  }
}

}  // namespace dt::server
