#include "worker/data/input/random_file.h"

#include <algorithm>
#include <cstring>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/remote_path.h"
#include "common/storage/files.h"
#include "worker/data/input/remote_files.h"

namespace dt::worker {
namespace {

class LocalFile : public RandomFile {
 public:
  LocalFile(OpenFile file, std::string path, uint64_t size)
      : file_(std::move(file)), path_(std::move(path)), size_(size) {}

  Result<size_t> ReadAt(uint64_t at, std::span<char> out) const override {
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t got = pread(file_.descriptor(), out.data() + done, out.size() - done,
                                static_cast<off_t>(at + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        return Unavailable("{}: reading failed after {} bytes: {}", path_, at + done,
                           std::strerror(errno));
      }
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }
  uint64_t size() const override { return size_; }

 private:
  const OpenFile file_;
  const std::string path_;
  const uint64_t size_;
};

class MemoryFile : public RandomFile {
 public:
  explicit MemoryFile(std::span<const char> bytes) : bytes_(bytes) {}
  Result<size_t> ReadAt(uint64_t at, std::span<char> out) const override {
    const size_t from = std::min<size_t>(at, bytes_.size());
    const size_t count = std::min(out.size(), bytes_.size() - from);
    std::copy_n(bytes_.data() + from, count, out.data());
    return count;
  }
  uint64_t size() const override { return bytes_.size(); }

 private:
  const std::span<const char> bytes_;
};

}  // namespace

Result<std::shared_ptr<const RandomFile>> OpenRandomFile(const std::string& path) {
  if (IsRemotePath(path)) return OpenRemoteFile(path);
  Result<OpenFile> opened = OpenForReading(path);
  if (opened.status().code() == StatusCode::kInvalidArgument) {
    return WithHint(opened.status(), "data that a program makes is read with format: pipe");
  }
  DT_TRY_STATUS(opened.status());
  struct stat info {};
  if (fstat(opened->descriptor(), &info) != 0) return DiskError("reading", path, errno);
  return std::make_shared<LocalFile>(*std::move(opened), path, static_cast<uint64_t>(info.st_size));
}

std::shared_ptr<const RandomFile> MakeMemoryFile(std::span<const char> bytes) {
  return std::make_shared<MemoryFile>(bytes);
}

}  // namespace dt::worker
