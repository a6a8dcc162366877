// How two processes of one host find each other: beside each TCP endpoint the server listens on a
// Unix socket whose abstract name is made of the endpoint. Such names, like TCP ports, belong to
// the network namespace, so whoever reaches the port of this host reaches the name; and they go
// with the process. Both sides refuse a peer of another user.
//
//   client ──greeting, segment, its arena──▶ server      it may send messages at once
//          ◀────────greeting, its arena─────
//
// Nothing here waits.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "common/base/status.h"
#include "common/net/shm/shm_memory.h"

namespace dt {

// The names under which a server of `endpoint` ("tcp://HOST:PORT") may listen, if its host is this
// one; asks the name service for names. Empty: another host, or not TCP.
std::vector<std::string> ShmNamesOf(const std::string& endpoint);

// Of a bound endpoint. Unavailable: the name is taken, or there are no such sockets.
Result<OwnedFd> ListenForShm(const std::string& bound_endpoint);
// The next one who connects, if it is of our user; an invalid descriptor if there is none. Busy:
// this process has no descriptor left.
Result<OwnedFd> AcceptShm(const OwnedFd& listener);
// The process that has connected; 0: this system does not name it here.
pid_t ProcessOf(const OwnedFd& socket);
// Unavailable: nobody listens there.
Result<OwnedFd> ConnectShm(const std::string& name);

struct ShmHello {
  std::vector<OwnedFd> fds;
};
Status SendShmHello(int socket, std::span<const int> fds);
// Nothing when it has not come yet. Malformed: it is none, or of another version.
Result<std::optional<ShmHello>> TakeShmHello(int socket);

}  // namespace dt
