#include "server/log/logged_part.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace dt::server {
namespace {

constexpr uint64_t kMagic = ~uint64_t{0};
constexpr size_t kWordsBefore = 2;  // Of the head, before the sizes.

std::vector<uint64_t> WordsOf(const Frame& head) {
  std::vector<uint64_t> words(head.size() / sizeof(uint64_t));
  std::memcpy(words.data(), head.bytes().data(), words.size() * sizeof(uint64_t));
  return words;
}

}  // namespace

RecordBytes EncodePart(const CopyRequest& part) {
  const Frames frames = Encode(part);
  std::vector<uint64_t> head = {kMagic, frames.size()};
  const auto bytes = std::make_shared<std::vector<std::byte>>();
  for (const Frame& frame : frames) {
    head.push_back(frame.size());
    bytes->insert(bytes->end(), frame.bytes().begin(), frame.bytes().end());
  }
  return {.head = std::string(reinterpret_cast<const char*>(head.data()),
                              head.size() * sizeof(uint64_t)),
          .keys = {},
          .gradients = *bytes,
          .owner = bytes};
}

bool IsPart(const Frame& head) {
  uint64_t first = 0;
  if (head.size() < sizeof(first)) return false;
  std::memcpy(&first, head.bytes().data(), sizeof(first));
  return first == kMagic;
}

Result<CopyRequest> DecodePart(const Frame& head, const Frame& frames,
                               std::span<const TableSpec> tables) {
  const std::vector<uint64_t> words = WordsOf(head);
  if (words.size() < kWordsBefore || words[1] != words.size() - kWordsBefore) {
    return Malformed("a part of a copied shard: the size of its head");
  }
  std::span<const std::byte> bytes = frames.bytes();
  Frames parts;
  for (const uint64_t size : std::span(words).subspan(kWordsBefore)) {
    if (size > bytes.size()) return Malformed("a part of a copied shard: it is cut off");
    parts.push_back(Frame::CopyOf(bytes.first(size)));
    bytes = bytes.subspan(size);
  }
  std::vector<WireTable> wires;
  for (const TableSpec& table : tables) wires.push_back({table.dim, table.wire});
  DT_TRY(DataRequest request, DecodeDataRequest(std::move(parts), wires));
  if (request.kind != DataRequest::Kind::kCopy || !bytes.empty()) {
    return Malformed("a part of a copied shard: it is another message");
  }
  return std::move(request.copy);
}

}  // namespace dt::server
