// Memory that two processes of one host share: a memfd and its mapping. Its size is sealed, so that
// no peer can take pages away under a reader. What peers shall only read is sealed against writing
// by anyone but the mapping of its maker: a descriptor can always be opened again, seals stay.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "common/base/status.h"

namespace dt {

// A file descriptor that is closed with it.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd();

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

class SharedMemory {
 public:
  // Of those who did not make it.
  enum class Access { kRead, kReadWrite };

  // Zeroed; takes pages when they are touched. Unavailable: this system has no such memory.
  static Result<SharedMemory> Create(const char* name, size_t bytes, Access of_peers);
  // A peer's. Malformed unless it is of ordinary pages, and its size sealed and `bytes`.
  static Result<SharedMemory> Open(OwnedFd fd, size_t bytes, Access access);

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  std::byte* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  const OwnedFd& fd() const { return fd_; }  // Of a peer's memory: none.
  // For a peer that shall only read. Unavailable without /proc.
  Result<OwnedFd> ReadOnlyFd() const;

 private:
  static Result<SharedMemory> Map(const OwnedFd& fd, size_t bytes, Access access);

  OwnedFd fd_;
  std::span<std::byte> bytes_;
};

}  // namespace dt
