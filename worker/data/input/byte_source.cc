#include "worker/data/input/byte_source.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace dt::worker {
namespace {

// A request to a remote file system has so many bytes.
constexpr size_t kRequestBytes = 8 << 20;

class FileSource : public ByteSource {
 public:
  explicit FileSource(std::shared_ptr<const RandomFile> file, uint64_t at = 0)
      : file_(std::move(file)), first_(at), at_(at) {}

  Result<size_t> Read(std::span<char> out) override {
    if (!file_->is_remote()) {
      DT_TRY(const size_t got, file_->ReadAt(at_, out));
      at_ += got;
      return got;
    }
    size_t done = 0;
    while (done < out.size()) {
      DT_TRY(const std::span<const char> ahead, Ahead());
      if (ahead.empty()) break;
      const size_t count = std::min(ahead.size(), out.size() - done);
      std::copy_n(ahead.data(), count, out.data() + done);
      done += count;
      at_ += count;
    }
    return done;
  }
  uint64_t consumed() const override { return at_ - first_; }
  std::shared_ptr<const RandomFile> file() const override { return file_; }

 private:
  // The requested bytes from position at_; empty at the end.
  Result<std::span<const char>> Ahead() {
    if (at_ >= start_ + buffer_.size()) {
      start_ = at_;
      buffer_.resize(kRequestBytes);
      DT_TRY(const size_t got, file_->ReadAt(at_, buffer_));
      buffer_.resize(got);
    }
    return std::span<const char>(buffer_).subspan(at_ - start_);
  }

  const std::shared_ptr<const RandomFile> file_;
  const uint64_t first_;
  uint64_t at_;
  // Bytes of a remote file, from position start_.
  std::vector<char> buffer_;
  uint64_t start_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> SourceFrom(std::shared_ptr<const RandomFile> file, uint64_t at) {
  return std::make_unique<FileSource>(std::move(file), at);
}

std::unique_ptr<ByteSource> MakeMemorySource(std::span<const char> bytes) {
  return std::make_unique<FileSource>(MakeMemoryFile(bytes));
}

Result<std::unique_ptr<ByteSource>> OpenFileSource(const std::string& path) {
  DT_TRY(std::shared_ptr<const RandomFile> file, OpenRandomFile(path));
  char magic[4] = {};
  DT_TRY(const size_t got, file->ReadAt(0, magic));
  auto source = std::make_unique<FileSource>(std::move(file));
  if (got >= 2 && std::memcmp(magic, "\x1f\x8b", 2) == 0) {
    return MakeGzipSource(std::move(source), path);
  }
  if (got >= 4 && std::memcmp(magic, "\x28\xb5\x2f\xfd", 4) == 0) {
    return MakeZstdSource(std::move(source), path);
  }
  return source;
}

}  // namespace dt::worker
