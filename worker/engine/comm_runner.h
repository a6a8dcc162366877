// Runs the nodes of Stream::kComm: the collectives that planner passes put between the nodes of a
// slice (ops/communication/collectives.cc), on values in host memory.
#pragma once

#include <memory>

#include "worker/engine/node_runner.h"

namespace dt::worker {

// Errors: Internal, if the engine was given no team, or a node has no group.
Result<std::unique_ptr<NodeRunner>> MakeCommRunner(const RunnerContext& context);

}  // namespace dt::worker
