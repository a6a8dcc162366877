#include "common/control/packet.h"

#include <array>
#include <cstring>

namespace dt {
namespace {

// "DVTACKT2" and "DVTUNKN2" as numbers.
constexpr uint64_t kMagic = 0x3254'4b43'4154'5644, kUnknownMagic = 0x324e'4b4e'5554'5644;
using Head = std::array<uint64_t, 6>;

}  // namespace

Frames EncodePacket(const Packet& packet) {
  const Head head = {packet.unknown ? kUnknownMagic : kMagic,
                     packet.session,
                     packet.number,
                     packet.term,
                     packet.sequence,
                     packet.ack};
  Frame frame = Frame::Of(sizeof(head) + packet.payload.size());
  std::memcpy(frame.bytes().data(), head.data(), sizeof(head));
  if (!packet.payload.empty()) {
    std::memcpy(frame.bytes().data() + sizeof(head), packet.payload.data(), packet.payload.size());
  }
  Frames frames;
  frames.push_back(std::move(frame));
  return frames;
}

Result<Packet> DecodePacket(const Frames& frames, const PayloadLimit& limit) {
  if (frames.size() != 1) return Malformed("a packet of {} parts; one is needed", frames.size());
  const std::span<const std::byte> bytes = frames[0].bytes();
  Head head;
  if (bytes.size() < sizeof(head)) return Malformed("a packet of {} bytes", bytes.size());
  std::memcpy(head.data(), bytes.data(), sizeof(head));
  if (head[0] != kMagic && head[0] != kUnknownMagic)
    return Malformed("a packet that is not Dovetail's");
  const std::span<const std::byte> payload = bytes.subspan(sizeof(head));
  if (limit && payload.size() > limit(head[1])) {
    return Malformed("a packet of {} bytes; its session may send {}", bytes.size(), limit(head[1]));
  }
  return Packet{
      .session = head[1],
      .sequence = head[4],
      .ack = head[5],
      .payload = std::string(reinterpret_cast<const char*>(payload.data()), payload.size()),
      .number = head[2],
      .term = head[3],
      .unknown = head[0] == kUnknownMagic};
}

}  // namespace dt
