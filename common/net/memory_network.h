// A network inside one process, for tests: the sockets of socket.h over queues and locks that
// ThreadSanitizer sees. Messages arrive whole and in order. While both ends live, a message is lost
// only if the queue to a client is full.
#pragma once

#include <memory>

#include "common/net/socket.h"

namespace dt {

// Endpoints are names; the 0 in "tcp://…:0" is replaced by a unique number. A client may connect
// before a server binds: its messages wait. When a server socket is destroyed, so are the messages
// in its inbox; its clients reach the next server that binds the same name.
std::unique_ptr<Network> MakeMemoryNetwork();

}  // namespace dt
