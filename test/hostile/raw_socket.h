// Sockets of this host, byte by byte. They bypass the program's own transport, so that a test can
// send what none of our clients would. No call waits longer than its timeout.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dt::test {

class RawSocket {
 public:
  static RawSocket Tcp(uint16_t port);  // Connects to 127.0.0.1.
  // A SOCK_SEQPACKET socket, as shared memory uses.
  static RawSocket Abstract(const std::string& name);
  RawSocket(RawSocket&& other) noexcept;
  RawSocket& operator=(RawSocket&& other) noexcept;
  ~RawSocket();

  bool connected() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  // Returns false if the connection is closed, or does not accept the bytes within `timeout`.
  bool Send(std::string_view bytes,
            std::chrono::milliseconds timeout = std::chrono::milliseconds(50));
  // Sends bytes and descriptors in one message.
  bool SendWith(std::string_view bytes, std::span<const int> fds);
  // Returns at most 64 KiB received within `timeout`; "" at the end of the connection, too.
  std::string Receive(std::chrono::milliseconds timeout);

 private:
  explicit RawSocket(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace dt::test
