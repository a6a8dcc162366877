#include "cli/export/array_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include <zlib.h>

#include "common/base/check.h"

namespace dt::cli {
namespace {

constexpr size_t kBufferBytes = 256 << 10;  // Of each array.

class ArrayFileImpl : public ArrayFile {
 public:
  ArrayFileImpl(std::string path, ArrayFormat format, std::vector<ArraySpec> arrays)
      : path_(std::move(path)), format_(format), arrays_(std::move(arrays)) {}
  ~ArrayFileImpl() override {
    if (file_ < 0) return;
    ::close(file_);
    ::unlink(draft().c_str());
  }

  Status Open(std::string_view about) {
    layout_ = format_ == ArrayFormat::kNpz ? NpzLayout(arrays_) : SafetensorsLayout(arrays_, about);
    for (size_t i = 0; i < arrays_.size(); ++i) {
      streams_.push_back({{}, layout_.data_at[i], layout_.data_at[i] + arrays_[i].bytes(), 0});
      if (format_ == ArrayFormat::kNpz) {
        // The checksum covers the header of the .npy, which ends the intro.
        const std::string member = NpzIntro(arrays_[i], 0).substr(NpyAt(i));
        AddToChecksum(streams_[i], std::as_bytes(std::span(member)));
      }
    }
    file_ = ::open(draft().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file_ < 0) return Failed("creating the file");
    return WriteAt(0, layout_.head);
  }

  Status Append(size_t array, std::span<const std::byte> bytes) override {
    Stream& stream = streams_[array];
    DT_CHECK(stream.at + stream.waiting.size() + bytes.size() <= stream.end);
    stream.waiting.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (format_ == ArrayFormat::kNpz) AddToChecksum(stream, bytes);
    return stream.waiting.size() < kBufferBytes ? OkStatus() : WriteWaiting(stream);
  }

  Status Finish() override {
    std::vector<uint32_t> crcs;
    for (size_t i = 0; i < streams_.size(); ++i) {
      DT_TRY_STATUS(WriteWaiting(streams_[i]));
      DT_CHECK(streams_[i].at == streams_[i].end);
      crcs.push_back(streams_[i].crc);
      if (format_ != ArrayFormat::kNpz) continue;
      DT_TRY_STATUS(
          WriteAt(layout_.data_at[i] - layout_.intro[i].size(), NpzIntro(arrays_[i], crcs[i])));
    }
    if (format_ == ArrayFormat::kNpz) {
      DT_TRY_STATUS(WriteAt(layout_.end, NpzEnd(arrays_, layout_, crcs)));
    }
    if (::fsync(file_) != 0) return Failed("writing the file");
    if (std::rename(draft().c_str(), path_.c_str()) != 0) return Failed("renaming the file");
    ::close(file_);
    file_ = -1;
    return OkStatus();
  }

 private:
  struct Stream {
    std::string waiting;
    uint64_t at = 0, end = 0;  // Of what waits; of the array.
    uint32_t crc = 0;
  };

  std::string draft() const { return path_ + ".part"; }
  // The place of the .npy in the intro.
  size_t NpyAt(size_t array) const { return layout_.intro[array].rfind("\x93NUMPY"); }

  static void AddToChecksum(Stream& stream, std::span<const std::byte> bytes) {
    stream.crc = static_cast<uint32_t>(
        crc32_z(stream.crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  }
  Status WriteWaiting(Stream& stream) {
    DT_TRY_STATUS(WriteAt(stream.at, stream.waiting));
    stream.at += stream.waiting.size();
    stream.waiting.clear();
    return OkStatus();
  }
  Status WriteAt(uint64_t at, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(at));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return Failed("writing the file");
      bytes.remove_prefix(static_cast<size_t>(written));
      at += static_cast<uint64_t>(written);
    }
    return OkStatus();
  }
  Status Failed(std::string_view doing) const {
    return WithWhere(Unavailable("{} failed: {}", doing, std::strerror(errno)), path_);
  }

  const std::string path_;
  const ArrayFormat format_;
  const std::vector<ArraySpec> arrays_;
  ArrayLayout layout_;
  std::vector<Stream> streams_;
  int file_ = -1;
};

}  // namespace

Result<std::unique_ptr<ArrayFile>> ArrayFile::Create(const std::string& path, ArrayFormat format,
                                                     std::vector<ArraySpec> arrays,
                                                     std::string_view about) {
  auto file = std::make_unique<ArrayFileImpl>(path, format, std::move(arrays));
  DT_TRY_STATUS(file->Open(about));
  return std::unique_ptr<ArrayFile>(std::move(file));
}

}  // namespace dt::cli
