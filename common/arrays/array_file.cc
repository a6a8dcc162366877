#include "common/arrays/array_file.h"

#include <zlib.h>

#include "common/base/check.h"
#include "common/storage/files.h"

namespace dt {
namespace {

constexpr size_t kBufferBytes = 256 << 10;  // For each array.

class ArrayFileImpl : public ArrayFile {
 public:
  ArrayFileImpl(std::string path, ArrayFormat format, std::vector<ArraySpec> arrays)
      : path_(std::move(path)), format_(format), arrays_(std::move(arrays)) {}

  Status Open(const Metadata& metadata) {
    if (format_ == ArrayFormat::kNpz) {
      metadata_ = MetadataJson(metadata);
      arrays_.push_back({"metadata", ArraySpec::Type::kU8, {metadata_.size()}});
      layout_ = NpzLayout(arrays_);
    } else {
      layout_ = SafetensorsLayout(arrays_, metadata);
    }
    for (size_t i = 0; i < arrays_.size(); ++i) {
      streams_.push_back({{}, layout_.data_at[i], layout_.data_at[i] + arrays_[i].bytes(), 0});
      if (format_ == ArrayFormat::kNpz) {
        // The checksum also covers the header of the .npy, which is the end of the intro.
        const std::string member = NpzIntro(arrays_[i], 0).substr(NpyAt(i));
        AddToChecksum(streams_[i], std::as_bytes(std::span(member)));
      }
    }
    DT_TRY(file_, NewFile::Create(path_));
    return file_->WriteAt(0, layout_.head);
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
    if (format_ == ArrayFormat::kNpz) {
      DT_TRY_STATUS(Append(arrays_.size() - 1, std::as_bytes(std::span(metadata_))));
    }
    for (size_t i = 0; i < streams_.size(); ++i) {
      DT_TRY_STATUS(WriteWaiting(streams_[i]));
      DT_CHECK(streams_[i].at == streams_[i].end);
      crcs.push_back(streams_[i].crc);
      if (format_ != ArrayFormat::kNpz) continue;
      DT_TRY_STATUS(file_->WriteAt(layout_.data_at[i] - layout_.intro[i].size(),
                                   NpzIntro(arrays_[i], crcs[i])));
    }
    if (format_ == ArrayFormat::kNpz) {
      DT_TRY_STATUS(file_->WriteAt(layout_.end, NpzEnd(arrays_, layout_, crcs)));
    }
    return file_->Finish();
  }

 private:
  struct Stream {
    std::string waiting;
    uint64_t at = 0, end = 0;  // File offsets of `waiting` and of the array's end.
    uint32_t crc = 0;
  };

  // Position of the .npy in the intro.
  size_t NpyAt(size_t array) const { return layout_.intro[array].rfind("\x93NUMPY"); }

  static void AddToChecksum(Stream& stream, std::span<const std::byte> bytes) {
    stream.crc = static_cast<uint32_t>(
        crc32_z(stream.crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  }
  Status WriteWaiting(Stream& stream) {
    DT_TRY_STATUS(file_->WriteAt(stream.at, stream.waiting));
    stream.at += stream.waiting.size();
    stream.waiting.clear();
    return OkStatus();
  }

  const std::string path_;
  const ArrayFormat format_;
  std::vector<ArraySpec> arrays_;
  std::string metadata_;  // The data of an npz file's last array.
  ArrayLayout layout_;
  std::vector<Stream> streams_;
  std::unique_ptr<NewFile> file_;
};

}  // namespace

Result<std::unique_ptr<ArrayFile>> ArrayFile::Create(const std::string& path, ArrayFormat format,
                                                     std::vector<ArraySpec> arrays,
                                                     const Metadata& metadata) {
  auto file = std::make_unique<ArrayFileImpl>(path, format, std::move(arrays));
  DT_TRY_STATUS(file->Open(metadata));
  return std::unique_ptr<ArrayFile>(std::move(file));
}

}  // namespace dt
