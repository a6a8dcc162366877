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

// A row with its state keeps the updates that it has missed, if they are the job's, too. Otherwise
// they are made up for, and it misses none so far: it counts as pushed in the last step, also for
// expiry.
Result<std::span<const std::byte>> TakenRows::Take(const SavedValues& saved,
                                                   std::span<const std::byte> record) {
  const auto& was = saved.table().missed;
  const auto& is = options_.table.missed;
  const bool same = was.has_value() && is.has_value() && was->optimizer == is->optimizer;
  const bool keeps_missed = options_.keep_state && (same || !was.has_value());
  state_.resize(saved.table().state);
  DT_TRY_STATUS(keeps_missed ? saved.ReadPushed(record, values_, state_)
                             : saved.ReadNow(record, values_, state_));
  Step last_push = std::min(*LastPushOf(record), options_.steps_before);
  if (!keeps_missed && (was.has_value() || is.has_value())) last_push = LastStep();
  return Encode(values_, options_.keep_state ? state_ : options_.initial_state, last_push);
}

std::span<const std::byte> TakenRows::Make(std::span<const float> values) {
  return Encode(values, options_.initial_state,
                options_.table.missed.has_value() ? LastStep() : options_.steps_before);
}

// The step before the job's first one, or that one if it is step 0.
Step TakenRows::LastStep() const { return std::max<Step>(options_.steps_before, 1) - 1; }

std::span<const std::byte> TakenRows::Encode(std::span<const float> values,
                                             std::span<const float> state, Step last_push) {
  DT_CHECK(state.size() == options_.table.state);
  EncodeRows(options_.table.dtype, options_.table.dim, values, record_.data());
  std::byte* const at = record_.data() + values_bytes_;
  std::memcpy(at, state.data(), state.size_bytes());
  std::memcpy(at + state.size_bytes(), &last_push, sizeof(last_push));
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
