#include <vector>

#include <zlib.h>

#include "worker/data/input/byte_source.h"

namespace dt::worker {
namespace {

constexpr size_t kPackedBytes = 256 << 10;
constexpr int kGzipWindow = 15 + 16;  // zlib's code for the largest window and a gzip header.

// Several gzip members in a row are one stream, as for gunzip.
class GzipSource : public ByteSource {
 public:
  GzipSource(std::unique_ptr<ByteSource> packed, std::string name)
      : packed_(std::move(packed)), name_(std::move(name)), buffer_(kPackedBytes) {
    ready_ = inflateInit2(&stream_, kGzipWindow) == Z_OK;
  }
  ~GzipSource() override { inflateEnd(&stream_); }

  Result<size_t> Read(std::span<char> out) override {
    if (!ready_) return Unavailable("{}: no memory for gzip decompression", name_);
    size_t done = 0;
    while (done < out.size()) {
      if (stream_.avail_in == 0) DT_TRY_STATUS(Refill());
      if (stream_.avail_in == 0) {
        if (inside_) return Damaged(made_ + done, "it ends too early");
        break;
      }
      DT_TRY(const size_t made, Inflate(out.subspan(done)));
      done += made;
    }
    made_ += done;
    return done;
  }
  uint64_t consumed() const override { return packed_->consumed(); }

 private:
  Status Refill() {
    DT_TRY(const size_t got, packed_->Read(buffer_));
    stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_in = static_cast<uInt>(got);
    return OkStatus();
  }

  Result<size_t> Inflate(std::span<char> out) {
    const size_t room = std::min<size_t>(out.size(), 1u << 30);
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(room);
    inside_ = true;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    const size_t made = room - stream_.avail_out;
    if (code == Z_STREAM_END) {
      inside_ = false;
      inflateReset2(&stream_, kGzipWindow);
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      return Damaged(made_ + made, stream_.msg != nullptr ? stream_.msg : "unknown reason");
    }
    return made;
  }

  Status Damaged(uint64_t at, std::string_view reason) const {
    return WithHint(
        Malformed("{}: the gzip data is damaged after {} bytes of text: {}", name_, at, reason),
        "check the file with `gzip -t` and get it again");
  }

  const std::unique_ptr<ByteSource> packed_;
  const std::string name_;
  std::vector<char> buffer_;
  z_stream stream_{};
  bool ready_ = false;
  bool inside_ = true;  // Inside a member that has not ended.
  uint64_t made_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> MakeGzipSource(std::unique_ptr<ByteSource> packed, std::string name) {
  return std::make_unique<GzipSource>(std::move(packed), std::move(name));
}

}  // namespace dt::worker
