#include "common/net/shm/shm_memory.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

namespace dt {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr int kNoMoreSeals = F_SEAL_SEAL;
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010  // Linux 5.1; older headers do not have it.
#endif

}  // namespace

OwnedFd::~OwnedFd() {
  if (fd_ >= 0) close(fd_);
}

Result<SharedMemory> SharedMemory::Create(const char* name, size_t bytes, Access of_peers) {
  OwnedFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return Unavailable("no shared memory of {} bytes: {}", bytes, std::strerror(errno));
  }
  DT_TRY(SharedMemory memory, Map(fd, bytes, Access::kReadWrite));
  const int write_seal = of_peers == Access::kRead ? F_SEAL_FUTURE_WRITE : 0;
  if (fcntl(fd.get(), F_ADD_SEALS, kSizeSeals | kNoMoreSeals | write_seal) != 0) {
    return Unavailable("cannot seal shared memory: {}", std::strerror(errno));
  }
  memory.fd_ = std::move(fd);
  return memory;
}

// Memory of huge pages can be sealed, too, but its reader is killed if the system has no huge page
// left.
Result<SharedMemory> SharedMemory::Open(OwnedFd fd, size_t bytes, Access access) {
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals) {
    return Malformed("shared memory whose size is not sealed");
  }
  struct statfs kind {};
  if (fstatfs(fd.get(), &kind) != 0 || kind.f_type != TMPFS_MAGIC) {
    return Malformed("shared memory of no ordinary pages");
  }
  struct stat info {};
  if (fstat(fd.get(), &info) != 0 || static_cast<size_t>(info.st_size) != bytes) {
    return Malformed("shared memory of {} bytes instead of {}", info.st_size, bytes);
  }
  return Map(fd, bytes, access);
}

Result<SharedMemory> SharedMemory::Map(const OwnedFd& fd, size_t bytes, Access access) {
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const memory = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (memory == MAP_FAILED) {
    return Unavailable("cannot map {} bytes of shared memory: {}", bytes, std::strerror(errno));
  }
  SharedMemory shared;
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
