#include <vector>

#include <zstd.h>

#include "worker/data/input/byte_source.h"

namespace dt::worker {
namespace {

// Several frames in a row are one stream, as for unzstd.
class ZstdSource : public ByteSource {
 public:
  ZstdSource(std::unique_ptr<ByteSource> packed, std::string name)
      : packed_(std::move(packed)),
        name_(std::move(name)),
        buffer_(ZSTD_DStreamInSize()),
        stream_(ZSTD_createDStream(), &ZSTD_freeDStream) {}

  Result<size_t> Read(std::span<char> out) override {
    if (stream_ == nullptr) return Unavailable("{}: no memory for zstd decompression", name_);
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    while (to.pos < to.size) {
      if (from_.pos == from_.size) {
        DT_TRY(const size_t got, packed_->Read(buffer_));
        from_ = {buffer_.data(), got, 0};
        ended_ = got == 0;
      }
      const size_t before = to.pos;
      const bool drained = ended_;
      if (drained && !inside_) break;
      const size_t code = ZSTD_decompressStream(stream_.get(), &to, &from_);
      if (ZSTD_isError(code)) return Damaged(made_ + to.pos, ZSTD_getErrorName(code));
      inside_ = code != 0;
      if (drained && inside_ && to.pos == before) {
        return Damaged(made_ + to.pos, "it ends too early");
      }
    }
    made_ += to.pos;
    return to.pos;
  }
  uint64_t consumed() const override { return packed_->consumed(); }

 private:
  Status Damaged(uint64_t at, std::string_view reason) const {
    return WithHint(
        Malformed("{}: the zstd data is damaged after {} bytes of text: {}", name_, at, reason),
        "check the file with `zstd -t` and get it again");
  }

  const std::unique_ptr<ByteSource> packed_;
  const std::string name_;
  std::vector<char> buffer_;
  std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream_;
  ZSTD_inBuffer from_{nullptr, 0, 0};
  bool inside_ = true;  // Inside a frame that has not ended.
  bool ended_ = false;  // All packed bytes are read.
  uint64_t made_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> MakeZstdSource(std::unique_ptr<ByteSource> packed, std::string name) {
  return std::make_unique<ZstdSource>(std::move(packed), std::move(name));
}

}  // namespace dt::worker
