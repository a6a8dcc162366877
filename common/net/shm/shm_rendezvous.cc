#include "common/net/shm/shm_rendezvous.h"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <ifaddrs.h>
#include <netdb.h>

#include "common/net/zmq_endpoint.h"

namespace dt {
namespace {

constexpr char kGreeting[] = "dovetail shm 1\n";  // The number changes with the segment's layout.
constexpr size_t kFdsMax = 2;
constexpr int kBacklog = 256;
constexpr int kSocketType = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;

struct Name {
  sockaddr_un address{};
  socklen_t size = 0;
};

std::optional<Name> NameOf(const std::string& text) {
  Name name;
  name.address.sun_family = AF_UNIX;
  if (text.size() + 1 > sizeof(name.address.sun_path)) return {};
  std::memcpy(name.address.sun_path + 1, text.data(), text.size());  // Abstract: begins with 0.
  name.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return name;
}

std::string NumberOf(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  const void* const bytes =
      address->sa_family == AF_INET
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  return inet_ntop(address->sa_family, bytes, text, sizeof(text)) != nullptr ? text : "";
}

bool IsInternet(const sockaddr* address) {
  return address != nullptr && (address->sa_family == AF_INET || address->sa_family == AF_INET6);
}

bool IsOfThisHost(const std::string& number) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return false;
  bool found = false;
  for (const ifaddrs* i = all; i != nullptr && !found; i = i->ifa_next) {
    found = IsInternet(i->ifa_addr) && NumberOf(i->ifa_addr) == number;
  }
  freeifaddrs(all);
  return found;
}

std::vector<std::string> AddressesOf(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return {};
  std::vector<std::string> numbers;
  for (const addrinfo* i = found; i != nullptr; i = i->ai_next) {
    if (IsInternet(i->ai_addr)) numbers.push_back(NumberOf(i->ai_addr));
  }
  freeaddrinfo(found);
  return numbers;
}

std::string NameText(const std::string& number, const std::string& port) {
  return fmt::format("dovetail/{}/{}", number, port);
}

std::optional<ucred> PeerOf(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return {};
  return peer;
}

bool IsOurUser(int socket) {
  const std::optional<ucred> peer = PeerOf(socket);
  return peer.has_value() && peer->uid == geteuid();
}

}  // namespace

std::vector<std::string> ShmNamesOf(const std::string& endpoint) {
  const Result<EndpointParts> parts = ParseEndpoint(endpoint);
  if (!parts.ok() || parts->scheme != "tcp") return {};
  std::vector<std::string> names;
  const std::string host = parts->host == "localhost" ? "127.0.0.1" : parts->host;
  for (const std::string& number : AddressesOf(host)) {
    in_addr v4{};
    const bool loopback = number == "::1" || (inet_pton(AF_INET, number.c_str(), &v4) == 1 &&
                                              ntohl(v4.s_addr) >> 24 == 127);
    if (!loopback && !IsOfThisHost(number)) continue;
    const std::string all = number.find(':') == std::string::npos ? "0.0.0.0" : "::";
    names.push_back(NameText(number, parts->port));
    names.push_back(NameText(all, parts->port));
  }
  return names;
}

Result<OwnedFd> ListenForShm(const std::string& bound_endpoint) {
  DT_TRY(const EndpointParts parts, ParseEndpoint(bound_endpoint));
  if (parts.scheme != "tcp") return Unavailable("{} is not reached by TCP", bound_endpoint);
  const std::optional<Name> name = NameOf(NameText(parts.host, parts.port));
  OwnedFd socket(::socket(AF_UNIX, kSocketType, 0));
  if (!name.has_value() || !socket.valid() ||
      bind(socket.get(), reinterpret_cast<const sockaddr*>(&name->address), name->size) != 0 ||
      listen(socket.get(), kBacklog) != 0) {
    return Unavailable("no socket for shared memory beside {}: {}", bound_endpoint,
                       std::strerror(errno));
  }
  return socket;
}

Result<OwnedFd> AcceptShm(const OwnedFd& listener) {
  OwnedFd socket(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.valid() &&
      (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
    return Busy("no socket for one who connects: {}", std::strerror(errno));
  }
  return socket.valid() && IsOurUser(socket.get()) ? std::move(socket) : OwnedFd();
}

Result<OwnedFd> ConnectShm(const std::string& text) {
  const std::optional<Name> name = NameOf(text);
  OwnedFd socket(::socket(AF_UNIX, kSocketType, 0));
  if (!name.has_value() || !socket.valid() ||
      connect(socket.get(), reinterpret_cast<const sockaddr*>(&name->address), name->size) != 0) {
    return Unavailable("nobody offers shared memory as {}: {}", text, std::strerror(errno));
  }
  if (!IsOurUser(socket.get())) return Unavailable("{} is another user's", text);
  return socket;
}

pid_t ProcessOf(const OwnedFd& socket) {
  const std::optional<ucred> peer = PeerOf(socket.get());
  return peer.has_value() ? peer->pid : 0;
}

Status SendShmHello(int socket, std::span<const int> fds) {
  iovec bytes{const_cast<char*>(kGreeting), sizeof(kGreeting)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kFdsMax * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  if (sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(kGreeting)) {
    return Unavailable("no greeting for shared memory: {}", std::strerror(errno));
  }
  return OkStatus();
}

Result<std::optional<ShmHello>> TakeShmHello(int socket) {
  char text[sizeof(kGreeting)] = {};
  iovec bytes{text, sizeof(text)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kFdsMax * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::optional<ShmHello>();
  ShmHello hello;  // Owns the received descriptors even if the bytes are wrong.
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); got >= 0 && c != nullptr;
       c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
      hello.fds.emplace_back(fd);
    }
  }
  const bool cut = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  if (got != sizeof(kGreeting) || cut || std::memcmp(text, kGreeting, sizeof(text)) != 0) {
    return Malformed("a greeting for shared memory of another program or version");
  }
  return std::optional(std::move(hello));
}

}  // namespace dt
