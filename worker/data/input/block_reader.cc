#include "worker/data/input/block_reader.h"

#include <algorithm>

namespace dt::worker {

Status BlockReader::Next(std::string& text) {
  do {
    text.clear();
    if (at_ >= part_.end) return OkStatus();
    DT_TRY_STATUS(ReadLines(text));
    if (text.empty()) return OkStatus();
    KeepPart(text);
  } while (text.empty());
  return OkStatus();
}

// The source may begin one byte before the part, in the line before its first one.
void BlockReader::KeepPart(std::string& text) {
  const uint64_t begin = at_;
  at_ += text.size();
  if (at_ >= part_.end) {
    // The line with the part's last byte is the last one.
    const uint64_t last = part_.end - 1 - begin;
    text.resize(std::min(text.find('\n', last), text.size() - 1) + 1);
  }
  if (begin >= part_.begin) return;
  const uint64_t before = std::min<uint64_t>(part_.begin - begin, text.size());
  text.erase(0, std::min(text.find('\n', before - 1), text.size() - 1) + 1);
}

// How much to read at once, after so many bytes. Little behind the part's end, where only the end
// of a line is wanted.
size_t BlockReader::Room(size_t before) const {
  constexpr uint64_t kTailBytes = 4096;
  const size_t room = before < kBlockBytes ? kBlockBytes : kBlockBytes / 2;
  const uint64_t at = at_ + before;
  return at < part_.end ? std::min<uint64_t>(room, part_.end - at) : kTailBytes;
}

// Whole lines, as many as are in about kBlockBytes.
Status BlockReader::ReadLines(std::string& text) {
  text.swap(rest_);
  rest_.clear();
  while (!ended_) {
    const size_t before = text.size();
    const size_t room = Room(before);
    text.resize(before + room);
    DT_TRY(const size_t got, source_->Read({text.data() + before, room}));
    text.resize(before + got);
    ended_ = got < room;
    if (!started_ && at_ == 0 && text.starts_with("\xef\xbb\xbf")) {
      text.erase(0, 3);
      at_ += 3;
    }
    started_ = true;
    if (ended_) break;
    const size_t last = text.rfind('\n');
    if (last != std::string::npos) {
      rest_.assign(text, last + 1);
      text.resize(last + 1);
      break;
    }
    if (text.size() > kLineBytesMax) {
      return Malformed("{}: a line of more than {} bytes found, text expected", name_,
                       kLineBytesMax);
    }
  }
  return OkStatus();
}

}  // namespace dt::worker
