// Limits on the size of a tensor, so that no product of its dimensions overflows, whatever values
// its symbolic dimensions take.
#pragma once

#include "common/graph/graph.h"

namespace dt {

// The batch dimension does not count: it is a limit per sample.
inline constexpr int64_t kElementsMax = int64_t{1} << 31;
inline constexpr size_t kRankMax = 8;

bool IsWithinBounds(const SymShape& shape);

}  // namespace dt
