// A packet of a Session as one frame: 48 bytes (magic, session, number, term, sequence, ack;
// little-endian), then the payload. The magic number also says whether the session is unknown.
#pragma once

#include <functional>

#include "common/base/status.h"
#include "common/control/session.h"
#include "common/net/frame.h"

namespace dt {

Frames EncodePacket(const Packet& packet);
// Returns the size limit in bytes for payloads of a session.
using PayloadLimit = std::function<size_t(uint64_t session)>;
// Malformed if the frame is no packet, or if its payload is above the limit, which is checked
// before the payload is copied.
Result<Packet> DecodePacket(const Frames& frames, const PayloadLimit& limit = {});

}  // namespace dt
