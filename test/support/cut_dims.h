// Short forms of layouts, for tests.
#pragma once

#include <utility>

#include "common/layout/layout.h"

namespace dt {

// A dimension that is cut over these axes.
inline CutDim Over(AxisList axes) { return {{.size = 0, .axes = std::move(axes), .parts = {}}}; }

}  // namespace dt
