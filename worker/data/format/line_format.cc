#include "worker/data/format/line_format.h"

#include <algorithm>

#include "worker/data/input/block_reader.h"

namespace dt::worker {
namespace {

constexpr size_t kHeadBytes = 4096;

class LineReader : public InputReader {
 public:
  LineReader(LineFormat& format, NamedSource input)
      : format_(format), name_(input.name), part_(PartOf(input)), file_(input.bytes->file()) {
    const uint64_t from = part_.begin == 0 ? 0 : part_.begin - 1;
    if (from > 0 && file_ != nullptr) input.bytes = SourceFrom(file_, from);
    blocks_.emplace(std::move(input.bytes), name_, part_, from);
  }

  Status Next(std::string& bytes) override {
    bytes.clear();
    if (part_.begin == part_.end) return OkStatus();
    if (part_.begin > 0 && input_.decoder == nullptr) {
      DT_TRY(const std::string head, Head());
      DT_TRY(input_, format_.LinesOf(head, name_));
    }
    DT_TRY_STATUS(blocks_->Next(bytes));
    if (input_.decoder != nullptr || bytes.empty()) return OkStatus();
    DT_TRY(input_, format_.LinesOf(bytes, name_));
    if (!input_.has_header) return OkStatus();
    bytes.erase(0, std::min(bytes.find('\n'), bytes.size() - 1) + 1);
    return bytes.empty() ? blocks_->Next(bytes) : OkStatus();
  }
  std::shared_ptr<const BlockDecoder> decoder() const override { return input_.decoder; }
  uint64_t header_lines() const override { return input_.has_header && first_byte() == 0 ? 1 : 0; }
  bool may_lack_rows() const override { return input_.has_header || !part_.is_all(); }
  uint64_t first_byte() const override { return part_.begin; }
  uint64_t consumed() const override { return blocks_->consumed(); }
  const LineInput* lines() const override { return input_.decoder == nullptr ? nullptr : &input_; }

 private:
  // A file that can only be read from its start is whole in the part in which it begins.
  static ByteRange PartOf(const NamedSource& input) {
    if (input.part.is_all() || input.bytes->file() != nullptr) return input.part;
    return input.part.begin == 0 ? ByteRange() : ByteRange{1, 1};
  }
  // The first line of the file, with its end.
  Result<std::string> Head() const {
    std::string head;
    for (size_t end = 0; end == 0;) {
      const size_t before = head.size();
      head.resize(before + kHeadBytes);
      DT_TRY(const size_t got, file_->ReadAt(before, std::span(head).subspan(before)));
      head.resize(before + got);
      end = head.find('\n', before) + 1;
      if (end == 0 && (got < kHeadBytes || head.size() > kLineBytesMax)) end = head.size();
      if (end > 0) head.resize(end);
    }
    return head.starts_with("\xef\xbb\xbf") ? head.substr(3) : head;
  }

  LineFormat& format_;
  const std::string name_;
  const ByteRange part_;
  const std::shared_ptr<const RandomFile> file_;
  std::optional<BlockReader> blocks_;
  LineInput input_;  // Has no decoder until the first block has been read.
};

}  // namespace

std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

std::string_view FirstLine(std::string_view text) { return TakeLine(text); }

void LineDecoder::Decode(std::string_view bytes, RowScratch& scratch, BlockResult& out) const {
  out.Clear(layout(), bytes.size() / line_bytes());
  std::string error;
  for (; !bytes.empty(); ++out.lines) {
    const std::string_view line = TakeLine(bytes);
    if (line.empty()) continue;
    out.block.Start();
    const LineResult result = Parse(line, scratch, out.block, error);
    if (result == LineResult::kRow) {
      out.block.Keep();
      continue;
    }
    out.block.Drop();
    if (result == LineResult::kNothing) continue;
    if (result == LineResult::kWiden) {
      out.widen = true;
      out.wider = scratch.wider;
      return;
    }
    if (out.bad_lines++ == 0) {
      out.first_bad = out.lines;
      out.first_error = error;
    }
  }
}

Result<std::unique_ptr<InputReader>> LineFormat::Open(NamedSource input) {
  return std::make_unique<LineReader>(*this, std::move(input));
}

}  // namespace dt::worker
