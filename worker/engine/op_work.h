// The work of operators, for profiles.
#pragma once

#include <string>

#include "common/runtime/work_span.h"

namespace dt::worker {

// One for each operator, the same for all its nodes. Any thread.
WorkKind& WorkOfOp(const std::string& op);

}  // namespace dt::worker
