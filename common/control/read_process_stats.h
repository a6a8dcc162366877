#pragma once

#include "common/cluster/process_stats.h"
#include "common/net/socket.h"

namespace dt {

// The resource use of this process.
ProcessStats ReadProcessStats(const Network* network);

}  // namespace dt
