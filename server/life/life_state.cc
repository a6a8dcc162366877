#include "server/life/life_state.h"

#include <cstring>
#include <vector>

#include "common/rows/row_record.h"

namespace dt::server {

static_assert(sizeof(RowExpiry::Mark) == LifeState::kMarkBytes);

std::string EncodeLifeState(const RowAdmission& admission, const RowExpiry& expiry) {
  if (admission.admits_all() && !expiry.timed() && expiry.expire_before() == 0) return {};
  const std::span<const std::byte> sketch = admission.sketch();
  const LifeState fields{.sketch_bytes = sketch.size(),
                         .running_ns = static_cast<uint64_t>(expiry.running().count()),
                         .expire_before = expiry.expire_before(),
                         .marks = expiry.marks().size()};
  std::string state(reinterpret_cast<const char*>(&fields), sizeof(fields));
  state.append(reinterpret_cast<const char*>(sketch.data()), sketch.size());
  for (const RowExpiry::Mark& mark : expiry.marks()) {
    state.append(reinterpret_cast<const char*>(&mark), sizeof(mark));
  }
  return state;
}

Result<bool> RestoreLifeState(std::string_view state, RowAdmission& admission, RowExpiry& expiry) {
  DT_TRY(const LifeState fields, LifeStateOf(state));
  state.remove_prefix(sizeof(fields));
  const std::span<std::byte> sketch = admission.sketch();
  const bool same_sketch = sketch.size() == fields.sketch_bytes;
  if (same_sketch && !sketch.empty()) std::memcpy(sketch.data(), state.data(), sketch.size());
  state.remove_prefix(fields.sketch_bytes);
  std::vector<RowExpiry::Mark> marks(fields.marks);
  if (!marks.empty()) std::memcpy(marks.data(), state.data(), marks.size() * sizeof(marks[0]));
  expiry.Restore(fields.expire_before, Duration(static_cast<Duration::rep>(fields.running_ns)),
                 marks);
  return same_sketch || admission.admits_all();
}

}  // namespace dt::server
