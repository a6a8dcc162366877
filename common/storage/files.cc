#include "common/storage/files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/hash.h"

namespace dt {
namespace {

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags)
      : value_(open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }
  bool ok() const { return value_ >= 0; }

 private:
  int value_;
};

Status WriteAll(int fd, const std::string& content, const std::string& path) {
  for (size_t done = 0; done < content.size();) {
    const ssize_t n = write(fd, content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return DiskError("writing", path, errno);
    done += static_cast<size_t>(n);
  }
  if (fsync(fd) != 0) return DiskError("writing", path, errno);
  return OkStatus();
}

}  // namespace

Status DiskError(std::string_view doing, const std::string& path, int error) {
  if (error == ENOENT) return NotFound("{} {}: {}", doing, path, std::strerror(error));
  Status status = Unavailable("{} {}: {}", doing, path, std::strerror(error));
  if (error == ENOSPC) return WithHint(status, "make room on that disk");
  if (error == EACCES || error == EPERM) return WithHint(status, "give this user the permission");
  return status;
}

Result<std::string> ReadWholeFile(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  if (!file.ok()) return DiskError("reading", path, errno);
  std::string content;
  char buffer[1 << 16];
  while (true) {
    const ssize_t n = read(file.value(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return DiskError("reading", path, errno);
    if (n == 0) return content;
    content.append(buffer, static_cast<size_t>(n));
  }
}

Status WriteWholeFile(const std::string& path, const std::string& content) {
  const std::string temporary = path + ".writing";
  {
    const Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file.ok()) return DiskError("writing", temporary, errno);
    DT_TRY_STATUS(WriteAll(file.value(), content, temporary));
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return DiskError("naming", path, errno);
  return OkStatus();
}

Status SyncPath(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  if (!file.ok() || fsync(file.value()) != 0) return DiskError("writing", path, errno);
  return OkStatus();
}

Result<uint64_t> DigestOfFile(const std::string& path) {
  const Descriptor file(path, O_RDONLY);
  struct stat info {};
  if (!file.ok() || fstat(file.value(), &info) != 0) return DiskError("reading", path, errno);
  const size_t bytes = static_cast<size_t>(info.st_size);
  if (bytes == 0) return HashBytes({});
  void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.value(), 0);
  if (mapped == MAP_FAILED) return DiskError("reading", path, errno);
  const uint64_t digest = HashBytes({static_cast<const std::byte*>(mapped), bytes});
  munmap(mapped, bytes);
  return digest;
}

}  // namespace dt
