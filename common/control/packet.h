// A packet of a Session as one frame: 32 bytes (magic, session, sequence, ack; little-endian), then
// the payload.
#pragma once

#include <functional>

#include "common/base/status.h"
#include "common/control/session.h"
#include "common/net/frame.h"

namespace dt {

Frames EncodePacket(const Packet& packet);
// The largest size in bytes of a payload of a session.
using PayloadLimit = std::function<size_t(uint64_t session)>;
// Malformed if it is no packet, or its payload is above the limit, which is checked before copying.
Result<Packet> DecodePacket(const Frames& frames, const PayloadLimit& limit = {});

}  // namespace dt
