#include "worker/data/format/line_format.h"

#include <algorithm>

#include "worker/data/input/block_reader.h"

namespace dt::worker {
namespace {

class LineReader : public InputReader {
 public:
  LineReader(LineFormat& format, NamedSource input)
      : format_(format), name_(input.name), blocks_(std::move(input.bytes), name_) {}

  Status Next(std::string& bytes) override {
    DT_TRY_STATUS(blocks_.Next(bytes));
    if (input_.decoder != nullptr || bytes.empty()) return OkStatus();
    DT_TRY(input_, format_.LinesOf(bytes, name_));
    if (!input_.has_header) return OkStatus();
    bytes.erase(0, std::min(bytes.find('\n'), bytes.size() - 1) + 1);
    return bytes.empty() ? blocks_.Next(bytes) : OkStatus();
  }
  std::shared_ptr<const BlockDecoder> decoder() const override { return input_.decoder; }
  uint64_t header_lines() const override { return input_.has_header ? 1 : 0; }
  uint64_t consumed() const override { return blocks_.consumed(); }
  const LineInput* lines() const override { return input_.decoder == nullptr ? nullptr : &input_; }

 private:
  LineFormat& format_;
  const std::string name_;
  BlockReader blocks_;
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
