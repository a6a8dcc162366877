#include "worker/data/input/block_reader.h"

namespace dt::worker {

Status BlockReader::Next(std::string& text) {
  text.swap(rest_);
  rest_.clear();
  while (!ended_) {
    const size_t before = text.size();
    const size_t room = before < kBlockBytes ? kBlockBytes : kBlockBytes / 2;
    text.resize(before + room);
    DT_TRY(const size_t got, source_->Read({text.data() + before, room}));
    text.resize(before + got);
    ended_ = got < room;
    if (!started_) {
      started_ = true;
      if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
    }
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
