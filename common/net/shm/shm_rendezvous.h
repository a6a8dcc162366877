// How two processes of one host find each other: next to each TCP endpoint, the server listens on a
// Unix socket whose abstract name is derived from the endpoint. Abstract names, like TCP ports,
// belong to the network namespace, so a process that reaches the port of this host also reaches the
// name; and they disappear with the process. Both sides refuse a peer of another user.
//
//   client ──greeting, segment, its arena──▶ server      the client may send messages at once
//          ◀────────greeting, its arena─────
//
// No function here waits.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "common/base/status.h"
#include "common/net/shm/shm_memory.h"

namespace dt {

// The names under which a server of `endpoint` ("tcp://HOST:PORT") may listen, if its host is this
// one; asks the name service to resolve host names. Empty: another host, or not TCP.
std::vector<std::string> ShmNamesOf(const std::string& endpoint);

// Listens next to a bound endpoint. Unavailable: the name is taken, or the system has no such
// sockets.
Result<OwnedFd> ListenForShm(const std::string& bound_endpoint);
// Accepts the next connection. Returns an invalid descriptor if none waits or its user is another
// one. Busy: this process has no free descriptor.
Result<OwnedFd> AcceptShm(const OwnedFd& listener);
// The process at the other end; 0 if the system does not tell it.
pid_t ProcessOf(const OwnedFd& socket);
// Unavailable: nobody listens under the name.
Result<OwnedFd> ConnectShm(const std::string& name);

struct ShmHello {
  std::vector<OwnedFd> fds;
};
Status SendShmHello(int socket, std::span<const int> fds);
// Returns nothing if the greeting has not arrived. Malformed: the bytes are no greeting, or one of
// another version.
Result<std::optional<ShmHello>> TakeShmHello(int socket);

}  // namespace dt
