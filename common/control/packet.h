// A packet of a Session as one frame: 32 bytes (magic, session, sequence, ack; little-endian), then
// the payload.
#pragma once

#include <functional>

#include "common/base/status.h"
#include "common/cluster/session.h"
#include "common/net/frame.h"

namespace dt {

Frames EncodePacket(const Packet& packet);
// The most bytes that a payload of a session may have.
using PayloadLimit = std::function<size_t(uint64_t session)>;
// Malformed for anything else, and, before anything is copied, for a payload above the limit.
Result<Packet> DecodePacket(const Frames& frames, const PayloadLimit& limit = {});

}  // namespace dt
