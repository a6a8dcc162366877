#include "common/net/shm_memory.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dt {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

}  // namespace

OwnedFd::~OwnedFd() {
  if (fd_ >= 0) close(fd_);
}

Result<SharedMemory> SharedMemory::Create(const char* name, size_t bytes) {
  OwnedFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, kSizeSeals) != 0) {
    return Unavailable("no shared memory of {} bytes: {}", bytes, std::strerror(errno));
  }
  return Map(std::move(fd), bytes, Access::kReadWrite);
}

Result<SharedMemory> SharedMemory::Open(OwnedFd fd, size_t bytes, Access access) {
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals) {
    return Malformed("shared memory whose size is not sealed");
  }
  struct stat info {};
  if (fstat(fd.get(), &info) != 0 || static_cast<size_t>(info.st_size) != bytes) {
    return Malformed("shared memory of {} bytes instead of {}", info.st_size, bytes);
  }
  return Map(std::move(fd), bytes, access);
}

Result<SharedMemory> SharedMemory::Map(OwnedFd fd, size_t bytes, Access access) {
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const memory = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (memory == MAP_FAILED) {
    return Unavailable("cannot map {} bytes of shared memory: {}", bytes, std::strerror(errno));
  }
  SharedMemory shared;
  shared.fd_ = std::move(fd);
  shared.bytes_ = {static_cast<std::byte*>(memory), bytes};
  return shared;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)), bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

Result<OwnedFd> SharedMemory::ReadOnlyFd() const {
  OwnedFd fd(open(fmt::format("/proc/self/fd/{}", fd_.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Unavailable("cannot reopen shared memory: {}", std::strerror(errno));
  return fd;
}

}  // namespace dt
