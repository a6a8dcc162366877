#include "common/rows/initial_rows.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/philox.h"

namespace dt {

InitialRows::InitialRows(const InitSpec& init, uint64_t seed, TableId table)
    : init_(init), stream_(StreamKey(seed, HashString("table"), table.value())) {}

void InitialRows::Fill(Key key, std::span<float> values) const {
  switch (init_.kind) {
    case InitKind::kZeros:
      std::ranges::fill(values, 0.0f);
      return;
    case InitKind::kConstant:
      std::ranges::fill(values, init_.value);
      return;
    case InitKind::kNormal:
      FillNormal(stream_, key, values);
      break;
    case InitKind::kUniform:
      FillUniform(stream_, key, values);
      break;
    case InitKind::kXavierNormal:
    case InitKind::kXavierUniform:
      DT_UNREACHABLE();  // Refused for tables when the job is read.
  }
  for (float& v : values) v *= init_.value;
}

}  // namespace dt
