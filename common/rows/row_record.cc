#include "common/rows/row_record.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/base/hash.h"

namespace dt {

std::optional<Step> LastPushOf(std::span<const std::byte> record) {
  Step step = 0;
  if (record.size() < sizeof(step)) return std::nullopt;
  std::memcpy(&step, record.last(sizeof(step)).data(), sizeof(step));
  return step;
}

void AddRow(TableId table, Key key, std::span<const std::byte> record, TableReport& report) {
  std::vector<std::byte> bytes(sizeof(uint64_t) + sizeof(Key) + record.size());
  const uint64_t id = table.value();
  std::memcpy(bytes.data(), &id, sizeof(id));
  std::memcpy(bytes.data() + sizeof(id), &key, sizeof(key));
  std::ranges::copy(record, bytes.begin() + sizeof(id) + sizeof(key));
  const Hash128 hash = HashBytes128(bytes);
  report.checksum_low += hash.low;
  report.checksum_high += hash.high;
  ++report.rows;
  report.bytes += sizeof(key) + record.size();
}

Result<LifeState> LifeStateOf(std::string_view state) {
  LifeState fields;
  if (state.size() < sizeof(fields)) return Malformed("it has {} bytes", state.size());
  std::memcpy(&fields, state.data(), sizeof(fields));
  const uint64_t rest = state.size() - sizeof(fields);
  if (fields.magic != LifeState::kMagic || fields.sketch_bytes > rest || fields.marks > rest ||
      rest != fields.sketch_bytes + fields.marks * LifeState::kMarkBytes) {
    return Malformed("it does not have the form that it should have");
  }
  return fields;
}

Result<Step> ExpireBeforeOf(std::string_view state) {
  if (state.empty()) return Step{0};
  DT_TRY(const LifeState fields, LifeStateOf(state));
  return fields.expire_before;
}

}  // namespace dt
