#include "worker/data/input/byte_source.h"

#include <algorithm>
#include <cstring>
#include <errno.h>
#include <unistd.h>

#include "common/storage/files.h"

namespace dt::worker {
namespace {

class FileSource : public ByteSource {
 public:
  FileSource(OpenFile file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  Result<size_t> Read(std::span<char> out) override {
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t got =
          pread(file_.descriptor(), out.data() + done, out.size() - done, static_cast<off_t>(at_));
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
  const OpenFile file_;
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
  Result<OpenFile> opened = OpenForReading(path);
  if (opened.status().code() == StatusCode::kInvalidArgument) {
    return WithHint(opened.status(), "data that a program makes is read with format: pipe");
  }
  DT_TRY_STATUS(opened.status());
  auto file = std::make_unique<FileSource>(*std::move(opened), path);
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
