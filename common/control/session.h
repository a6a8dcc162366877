// Exactly-once, in-order delivery between two processes over a network that may drop, duplicate,
// delay and reorder. A plain state machine without socket, clock and thread. Its user decides which
// thread owns it.
//
//   Send(m) ──▶ [seq, ack, m] ──▶ network ──▶ OnPacket ──▶ delivered, in order, once
//
// An unacknowledged packet is sent again after `resend_after` plus the time that its bytes need on
// a slow network. Each further pause is twice as long, up to 16 times the first. The window is
// bounded. Every packet with a payload is acknowledged, also a datagram, so a side that hears
// nothing for long knows that the connection is lost.
//
// A scheduler that was restarted knows no session. A process begins a new one, with a higher
// number, when the scheduler says so, or shows a higher term: then it has taken an old packet for
// the beginning of a session.
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
  uint64_t session = 0;   // The joining process's incarnation, in both directions.
  uint64_t sequence = 0;  // 1, 2, …; 0: no payload, or a datagram.
  uint64_t ack = 0;       // Every sequence up to this one has been delivered.
  std::string payload;
  uint64_t number = 1;   // Numbers the process's sessions, from 1.
  uint64_t term = 0;     // The scheduler's; 0 from processes.
  bool unknown = false;  // The scheduler does not know this session; nothing else counts.
};

class Session {
 public:
  Session(uint64_t id, Duration resend_after, uint64_t number = 1)
      : id_(id), number_(number), resend_after_(resend_after) {}

  // Appends the packets to send to `out`. Busy when 1,024 packets are unacknowledged.
  Status Send(TimePoint now, std::string payload, std::vector<Packet>& out);
  // A packet that is sent once: neither ordered nor resent.
  Packet Datagram(std::string payload) const;
  // Appends payloads that can now be delivered, in order, to `delivered`, and acknowledgements to
  // `out`. Ignores packets of other sessions.
  void OnPacket(TimePoint now, Packet packet, std::vector<std::string>& delivered,
                std::vector<Packet>& out);
  // Resends overdue packets. Call at least once per resend_after.
  void Tick(TimePoint now, std::vector<Packet>& out);

  uint64_t id() const { return id_; }
  uint64_t number() const { return number_; }
  bool all_acknowledged() const { return unacknowledged_.empty(); }
  // Bytes of payloads that are unacknowledged, or that arrived early.
  size_t held_bytes() const { return unacknowledged_bytes_ + early_bytes_; }

 private:
  struct Pending {
    uint64_t sequence;
    TimePoint due;   // When the packet is sent again.
    Duration pause;  // The pause that ends at `due`; the next is longer.
    std::string payload;
  };
  Packet PacketOf(const Pending& pending) const;

  Packet Outgoing(uint64_t sequence, std::string payload) const;

  uint64_t id_, number_;
  Duration resend_after_;
  uint64_t next_sequence_ = 1;
  std::deque<Pending> unacknowledged_;
  size_t unacknowledged_bytes_ = 0;
  uint64_t delivered_ = 0;                 // Highest sequence delivered.
  std::map<uint64_t, std::string> early_;  // Payloads that arrived before their turn.
  size_t early_bytes_ = 0;                 // At most kEarlyBytesMax.
};

}  // namespace dt
