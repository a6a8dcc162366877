#include "common/rows/taken_rows.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/rows/row_record.h"
#include "common/rows/rows_reader.h"

namespace dt {

TakenRows::TakenRows(const Options& options)
    : options_(options),
      values_bytes_(RowsBytes(options.table.dtype, options.table.dim, 1)),
      record_(values_bytes_ + options.table.state * sizeof(float) + sizeof(Step)),
      values_(options.table.dim) {}

Result<std::span<const std::byte>> TakenRows::Take(const RowsHeader::Table& saved,
                                                   std::span<const std::byte> record) {
  DT_TRY_STATUS(ReadValues(saved, record, values_));
  const Step last_push = std::min(*LastPushOf(record), options_.steps_before);
  Make(values_, last_push);
  const size_t values_bytes = RowsBytes(saved.dtype, saved.dim, 1);
  if (saved.dtype == options_.table.dtype) {
    std::memcpy(record_.data(), record.data(), values_bytes);
  }
  if (options_.keep_state) {
    DT_CHECK(saved.state == options_.table.state);
    std::memcpy(record_.data() + values_bytes_, record.data() + values_bytes,
                saved.state * sizeof(float));
  }
  return std::span<const std::byte>(record_);
}

std::span<const std::byte> TakenRows::Make(std::span<const float> values, Step last_push) {
  EncodeRows(options_.table.dtype, options_.table.dim, values, record_.data());
  std::byte* at = record_.data() + values_bytes_;
  for (uint32_t i = 0; i < options_.table.state; ++i, at += sizeof(float)) {
    std::memcpy(at, &options_.initial_state, sizeof(float));
  }
  std::memcpy(at, &last_push, sizeof(last_push));
  return record_;
}

Result<std::string> CountsOf(std::string_view state) {
  if (state.empty()) return std::string();
  DT_TRY(LifeState fields, LifeStateOf(state));
  const std::string_view sketch = state.substr(sizeof(fields), fields.sketch_bytes);
  fields.running_ns = fields.expire_before = fields.marks = 0;
  return std::string(reinterpret_cast<const char*>(&fields), sizeof(fields)).append(sketch);
}

}  // namespace dt
