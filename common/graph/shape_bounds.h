// How large a tensor may be: so that no product of its dimensions overflows, whatever the symbols
// are.
#pragma once

#include "common/graph/graph.h"

namespace dt {

inline constexpr int64_t kElementsMax = int64_t{1} << 31;  // Of a sample, where one comes first.
inline constexpr size_t kRankMax = 8;

bool IsWithinBounds(const SymShape& shape);

}  // namespace dt
