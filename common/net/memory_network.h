// A network inside one process: the sockets of socket.h over queues and locks that ThreadSanitizer
// sees. For tests. Messages arrive whole and in order; none is lost while both ends live.
#pragma once

#include <memory>

#include "common/net/socket.h"

namespace dt {

// Endpoints are names; in "tcp://…:0" the 0 becomes a number of its own. Connecting before binding
// works: messages wait. A server's inbox goes with it; clients reach the next one bound to the same
// name.
std::unique_ptr<Network> MakeMemoryNetwork();

}  // namespace dt
