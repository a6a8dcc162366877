// Sockets that carry messages between processes of one host through shared memory, and all other
// messages through another network. Each connection is decided separately. A server listens on
// both. A client uses shared memory if it finds the server's process on its own host, and the
// network below if not, or if shared memory fails or the server refuses it. The contract of the
// sockets is in socket.h. Messages in flight when a process dies are lost, as with TCP.
//
// A waiting side first spins for some microseconds, if that was enough the last time, and then
// sleeps: a client on a futex; a server, which also has to notice TCP messages, in one poll of all
// descriptors.
#pragma once

#include <cstddef>
#include <memory>

#include "common/net/socket.h"

namespace dt {

// `below` outlives the network. If the system offers no shared memory, the result only forwards to
// `below`. A server lends each process at most `lent_max` bytes at a time over all its connections.
// Messages above that limit are dropped, so that one process cannot use up the memory for the
// others.
std::unique_ptr<Network> MakeShmNetwork(Network& below, size_t lent_max = size_t{4} << 30);

}  // namespace dt
