#include "common/control/packet.h"

#include <array>
#include <cstring>

namespace dt {
namespace {

constexpr uint64_t kMagic = 0x3154'4b43'4154'5644;  // "DVTACKT1" as a number.
using Head = std::array<uint64_t, 4>;

}  // namespace

Frames EncodePacket(const Packet& packet) {
  const Head head = {kMagic, packet.session, packet.sequence, packet.ack};
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
  if (head[0] != kMagic) return Malformed("a packet that is not Dovetail's");
  const std::span<const std::byte> payload = bytes.subspan(sizeof(head));
  if (limit && payload.size() > limit(head[1])) {
    return Malformed("a packet of {} bytes; its session may send {}", bytes.size(), limit(head[1]));
  }
  return Packet{head[1], head[2], head[3],
                std::string(reinterpret_cast<const char*>(payload.data()), payload.size())};
}

}  // namespace dt
