#include "test/hostile/raw_socket.h"

#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace dt::test {
namespace {

bool Ready(int fd, short events, std::chrono::milliseconds timeout) {
  pollfd item{fd, events, 0};
  return poll(&item, 1, static_cast<int>(timeout.count())) > 0;
}

int Connected(int fd, const sockaddr* address, socklen_t size) {
  if (fd < 0) return -1;
  if (connect(fd, address, size) == 0 || errno == EINPROGRESS) return fd;
  close(fd);
  return -1;
}

}  // namespace

RawSocket RawSocket::Tcp(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  return RawSocket(Connected(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)));
}

RawSocket RawSocket::Abstract(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof(address.sun_path)) return RawSocket(-1);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return RawSocket(Connected(fd, reinterpret_cast<sockaddr*>(&address), size));
}

RawSocket::RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
RawSocket& RawSocket::operator=(RawSocket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
RawSocket::~RawSocket() {
  if (fd_ >= 0) close(fd_);
}

bool RawSocket::Send(std::string_view bytes, std::chrono::milliseconds timeout) {
  while (!bytes.empty()) {
    if (!connected() || !Ready(fd_, POLLOUT, timeout)) return false;
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool RawSocket::SendWith(std::string_view bytes, std::span<const int> fds) {
  if (!connected()) return false;
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  std::vector<char> control(CMSG_SPACE(fds.size_bytes()));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  return sendmsg(fd_, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

std::string RawSocket::Receive(std::chrono::milliseconds timeout) {
  std::string bytes(1 << 16, '\0');
  if (!connected() || !Ready(fd_, POLLIN, timeout)) return "";
  const ssize_t got = recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

}  // namespace dt::test
