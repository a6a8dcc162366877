// Logs how much time a run spent in each node of its plan.
#pragma once

#include "worker/engine/engine.h"

namespace dt::worker {

// Logs at level debug, longest first. `other` is a second engine with the same plan, or null.
void LogTimings(const Engine& engine, const Engine* other);

}  // namespace dt::worker
