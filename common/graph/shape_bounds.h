// Limits on the size of a tensor, so that products of its dimensions cannot overflow for any values
// of its symbolic dimensions.
#pragma once

#include "common/graph/graph.h"

namespace dt {

// Limit per sample: the batch dimension does not count.
inline constexpr int64_t kElementsMax = int64_t{1} << 31;
inline constexpr size_t kRankMax = 8;

bool IsWithinBounds(const SymShape& shape);

}  // namespace dt
