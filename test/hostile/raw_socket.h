// Sockets of this host, byte by byte: nothing of the program's own transport is between, so that a
// test can say what no client of ours would. Nothing here waits longer than it is told to.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dt::test {

class RawSocket {
 public:
  static RawSocket Tcp(uint16_t port);                 // Of 127.0.0.1.
  static RawSocket Abstract(const std::string& name);  // SOCK_SEQPACKET, as shared memory has it.
  RawSocket(RawSocket&& other) noexcept;
  RawSocket& operator=(RawSocket&& other) noexcept;
  ~RawSocket();

  bool connected() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  // False: the peer takes no more, or does not within `timeout`.
  bool Send(std::string_view bytes,
            std::chrono::milliseconds timeout = std::chrono::milliseconds(50));
  // In one message, with descriptors.
  bool SendWith(std::string_view bytes, std::span<const int> fds);
  // What came within `timeout`, at most 64 KiB; "" at the end, too.
  std::string Receive(std::chrono::milliseconds timeout);

 private:
  explicit RawSocket(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace dt::test
