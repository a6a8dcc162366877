// Memory that two processes of one host share: a memfd and its mapping. Its size is sealed, so that
// a peer cannot take pages away from a reader. Memory that peers may only read is also sealed
// against all writing except through the existing mapping of its maker. File permissions would not
// be enough: a descriptor can be opened again for writing, but seals stay.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "common/base/status.h"

namespace dt {

// A file descriptor that is closed when the object is destroyed.
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
  // The access of processes other than the maker.
  enum class Access { kRead, kReadWrite };

  // Zeroed memory; pages are allocated when touched. Unavailable: this system has no such memory.
  static Result<SharedMemory> Create(const char* name, size_t bytes, Access of_peers);
  // Maps a peer's memory. Malformed unless it has ordinary pages and its size is sealed and
  // `bytes`.
  static Result<SharedMemory> Open(OwnedFd fd, size_t bytes, Access access);

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  std::byte* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  const OwnedFd& fd() const { return fd_; }  // None for a peer's memory.
  // A descriptor for a peer that may only read. Unavailable without /proc.
  Result<OwnedFd> ReadOnlyFd() const;

 private:
  static Result<SharedMemory> Map(const OwnedFd& fd, size_t bytes, Access access);

  OwnedFd fd_;
  std::span<std::byte> bytes_;
};

}  // namespace dt
