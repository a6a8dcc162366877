// Sockets that carry messages between processes of one host through shared memory, and all others
// through the network they are put on. Chosen for each connection by itself: a server listens on
// both; a client that finds the server's process on its own host uses shared memory, otherwise, or
// when that fails or the server refuses it, the network below. The sockets' contract is that of
// socket.h; what was under way when a process died is lost, as with TCP.
//
// A side that waits spins for some microseconds if that was enough the last time, then sleeps: a
// client on a futex; a server, which must hear TCP as well, on one poll of all descriptors.
#pragma once

#include <cstddef>
#include <memory>

#include "common/net/socket.h"

namespace dt {

// `below` outlives it. Where the system offers no shared memory, it adds nothing to `below`.
// A server lends each process at most `lent_max` bytes at a time, over all its connections: what
// would be more is lost to that process, which may keep no memory from the others.
std::unique_ptr<Network> MakeShmNetwork(Network& below, size_t lent_max = size_t{4} << 30);

}  // namespace dt
