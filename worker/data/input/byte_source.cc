#include "worker/data/input/byte_source.h"

#include <algorithm>
#include <cstring>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dt::worker {
namespace {

class FileSource : public ByteSource {
 public:
  FileSource(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~FileSource() override { close(fd_); }

  Result<size_t> Read(std::span<char> out) override {
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t got = pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(at_));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        return Unavailable("{}: reading failed after {} bytes: {}", path_, at_,
                           std::strerror(errno));
      }
      if (got == 0) break;
      done += static_cast<size_t>(got);
      at_ += static_cast<uint64_t>(got);
    }
    return done;
  }
  uint64_t consumed() const override { return at_; }
  void Rewind() { at_ = 0; }

 private:
  const int fd_;
  const std::string path_;
  uint64_t at_ = 0;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::span<const char> bytes) : bytes_(bytes) {}
  Result<size_t> Read(std::span<char> out) override {
    const size_t count = std::min(out.size(), bytes_.size() - at_);
    std::copy_n(bytes_.data() + at_, count, out.data());
    at_ += count;
    return count;
  }
  uint64_t consumed() const override { return at_; }

 private:
  const std::span<const char> bytes_;
  size_t at_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> MakeMemorySource(std::span<const char> bytes) {
  return std::make_unique<MemorySource>(bytes);
}

Result<std::unique_ptr<ByteSource>> OpenFileSource(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return NotFound("{}: there is no such file", path);
  if (fd < 0) return Unavailable("{}: opening failed: {}", path, std::strerror(errno));
  auto file = std::make_unique<FileSource>(fd, path);
  struct stat info {};
  if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    return Invalid("{}: a directory found, a file expected", path);
  }
  char magic[4] = {};
  DT_TRY(const size_t got, file->Read(magic));
  file->Rewind();
  if (got >= 2 && std::memcmp(magic, "\x1f\x8b", 2) == 0) {
    return MakeGzipSource(std::move(file), path);
  }
  if (got >= 4 && std::memcmp(magic, "\x28\xb5\x2f\xfd", 4) == 0) {
    return MakeZstdSource(std::move(file), path);
  }
  return file;
}

}  // namespace dt::worker
