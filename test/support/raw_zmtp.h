// A ZMTP 3.0 peer (rfc.zeromq.org/spec:23) without a library, which can send what no library would.
// Every call ends within 10 s.
#pragma once

#include <arpa/inet.h>
#include <array>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "common/base/check.h"
#include "common/base/clock.h"

namespace dt::test {

class RawZmtp {
 public:
  // "tcp://127.0.0.1:PORT"
  explicit RawZmtp(const std::string& endpoint) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port =
        htons(static_cast<uint16_t>(std::stoul(endpoint.substr(endpoint.rfind(':') + 1))));
    DT_CHECK(connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    const timeval timeout{.tv_sec = 10, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  }
  RawZmtp(RawZmtp&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawZmtp& operator=(RawZmtp&&) = delete;
  ~RawZmtp() {
    if (fd_ >= 0) close(fd_);
  }

  // Returns false if the peer has closed the connection.
  bool Put(const std::string& bytes) const {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  bool Take(size_t count) const {
    std::array<char, 64> bytes{};
    return recv(fd_, bytes.data(), count, MSG_WAITALL) == static_cast<ssize_t>(count);
  }

  // Waits until the peer has closed the connection, at most for `timeout`.
  void WaitForEnd(milliseconds timeout) const {
    pollfd item{fd_, POLLRDHUP, 0};
    poll(&item, 1, static_cast<int>(timeout.count()));
  }

  // `mechanism` is "NULL" or "CURVE".
  bool Greet(const std::string& mechanism) const {
    std::string greeting("\xff\0\0\0\0\0\0\0\x01\x7f\x03\0", 12);
    greeting += mechanism;
    greeting.resize(64, '\0');
    return Put(greeting) && Take(64);
  }
  // Does the whole handshake of a DEALER of this name, with a socket that requires no key.
  bool OpenPlain(const std::string& name) const {
    std::string ready(
        "\x05READY\x0bSocket-Type\0\0\0\x06"
        "DEALER\x08Identity",
        6 + 12 + 4 + 6 + 9);
    ready += std::string("\0\0\0", 3) + static_cast<char>(name.size()) + name;
    // The first byte of the answer shows that the name was registered.
    return Greet("NULL") && Put(std::string("\x04") + static_cast<char>(ready.size()) + ready) &&
           Take(1);
  }

 private:
  int fd_ = socket(AF_INET, SOCK_STREAM, 0);
};

}  // namespace dt::test
