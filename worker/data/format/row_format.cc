#include "worker/data/format/row_format.h"

#include <algorithm>
#include <cstring>

namespace dt::worker {

std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

void ParseBlock(const RowFormat& format, std::string_view text, LineScratch& scratch,
                BlockResult& out) {
  out.block.Clear(format.layout(), text.size() / format.line_bytes());
  out.lines = out.bad_lines = out.first_bad = 0;
  out.first_error.clear();
  out.widen = false;
  std::string error;
  for (; !text.empty(); ++out.lines) {
    const std::string_view line = TakeLine(text);
    if (line.empty()) continue;
    out.block.Start();
    const LineResult result = format.Parse(line, scratch, out.block, error);
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

}  // namespace dt::worker
