// A packet of a Session as one frame: 32 bytes (magic, session, sequence, ack; little-endian), then
// the payload.
#pragma once

#include "common/base/status.h"
#include "common/cluster/session.h"
#include "common/net/frame.h"

namespace dt {

Frames EncodePacket(const Packet& packet);
// Malformed for anything else.
Result<Packet> DecodePacket(const Frames& frames);

}  // namespace dt
