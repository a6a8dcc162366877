#include "server/chain/copy_rows.h"

#include <cstring>

namespace dt::server {
namespace {

struct Head {
  uint32_t table = 0, bytes = 0;
  Key key = 0;
};
static_assert(sizeof(Head) == 16);

uint64_t PaddedRow(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

std::span<std::byte> AppendRow(uint32_t table, Key key, uint32_t record_bytes, std::string& to) {
  const Head head{table, record_bytes, key};
  const size_t at = to.size() + sizeof(head);
  to.append(reinterpret_cast<const char*>(&head), sizeof(head));
  to.resize(at + PaddedRow(record_bytes));
  return std::as_writable_bytes(std::span(to)).subspan(at, record_bytes);
}

Result<std::vector<CopiedRow>> RowsIn(std::span<const std::byte> bytes) {
  std::vector<CopiedRow> rows;
  while (!bytes.empty()) {
    Head head;
    if (bytes.size() < sizeof(head)) return Malformed("copied rows: a row without its key");
    std::memcpy(&head, bytes.data(), sizeof(head));
    bytes = bytes.subspan(sizeof(head));
    if (PaddedRow(head.bytes) > bytes.size()) return Malformed("copied rows: a row is cut off");
    rows.push_back({head.table, head.key, bytes.first(head.bytes)});
    bytes = bytes.subspan(PaddedRow(head.bytes));
  }
  return rows;
}

}  // namespace dt::server
