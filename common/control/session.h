// Exactly-once, in-order delivery between two processes over a network that may drop, duplicate,
// delay and reorder. A plain state machine: no socket, no clock, no thread. Owned by whoever drives
// it.
//
//   Send(m) ──▶ [seq, ack, m] ──▶ network ──▶ OnPacket ──▶ delivered, in order, once
//
// Unacknowledged packets are sent again after `resend_after` (plus the time that their bytes need
// on a slow network), then after twice as long, and so on up to 16 times; the window is bounded.
// Every packet with a payload is answered, datagrams too: who hears nothing for long is cut off.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace dt {

struct Packet {
  uint64_t session = 0;   // Incarnation of the process that joined; both directions carry it.
  uint64_t sequence = 0;  // 1, 2, …; 0: no payload, or one that is neither ordered nor resent.
  uint64_t ack = 0;       // Every sequence up to this one has been delivered.
  std::string payload;
};

class Session {
 public:
  Session(uint64_t id, Duration resend_after) : id_(id), resend_after_(resend_after) {}

  // Appends to `out` what to put on the network. Busy when 1,024 packets are unacknowledged.
  Status Send(TimePoint now, std::string payload, std::vector<Packet>& out);
  // Sent once, not resent, not ordered.
  Packet Datagram(std::string payload) const;
  // Payloads now deliverable, in order, appended to `delivered`; answers (acks) to `out`.
  void OnPacket(TimePoint now, Packet packet, std::vector<std::string>& delivered,
                std::vector<Packet>& out);
  // Resends what is overdue. Call at least every resend_after.
  void Tick(TimePoint now, std::vector<Packet>& out);

  uint64_t id() const { return id_; }
  bool all_acknowledged() const { return unacknowledged_.empty(); }
  // Bytes of the payloads that are not acknowledged yet, or arrived before their turn.
  size_t held_bytes() const { return unacknowledged_bytes_ + early_bytes_; }

 private:
  struct Pending {
    uint64_t sequence;
    TimePoint due;   // The next time that it is sent.
    Duration pause;  // The time between that and the one after.
    std::string payload;
  };
  Packet PacketOf(const Pending& pending) const;

  const uint64_t id_;
  const Duration resend_after_;
  uint64_t next_sequence_ = 1;
  std::deque<Pending> unacknowledged_;
  size_t unacknowledged_bytes_ = 0;
  uint64_t delivered_ = 0;                 // Highest sequence delivered.
  std::map<uint64_t, std::string> early_;  // Payloads that arrived before their turn.
  size_t early_bytes_ = 0;                 // At most kEarlyBytesMax.
};

}  // namespace dt
