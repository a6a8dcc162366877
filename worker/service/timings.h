// Where the time of a run went, for the log.
#pragma once

#include "worker/engine/engine.h"

namespace dt::worker {

// At level debug, the most first. `other`: of the same plan, or null.
void LogTimings(const Engine& engine, const Engine* other);

}  // namespace dt::worker
