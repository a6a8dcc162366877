// The sessions of all processes over one socket: packets in, messages of known senders out, and
// back. Counts and drops what is malformed. One thread; time is passed in; the socket is behind
// `Transmit`.
//
// A process that only asked for the status, or was refused, is a guest. Guests cannot keep others
// out: at most 64 of them have a session, and their sessions hold at most 64 MiB. The guest that
// was silent for longest, or holds most, is dropped first.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "common/control/messages.h"
#include "common/control/session.h"
#include "common/net/socket.h"

namespace dt::scheduler {

class SessionRouter {
 public:
  using Transmit = std::function<void(const PeerId&, const Packet&)>;
  struct Arrived {
    Incarnation from;
    ControlMessage message;
  };

  SessionRouter(Duration resend_after, Transmit transmit)
      : resend_after_(resend_after), transmit_(std::move(transmit)) {}

  // The limit is low for guests and unknown sessions: enough for a Join.
  size_t PayloadBytesMax(uint64_t session) const;
  // A session begins with a Join or a StatusRequest as its first message. The caller answers status
  // requests as it answers joins.
  std::vector<Arrived> OnPacket(TimePoint now, const PeerId& peer, Packet packet);
  // To an unknown session, or one that is 1,024 messages behind: dropped.
  void Send(TimePoint now, Incarnation to, const ControlMessage& message);
  // Its process has ended: nothing is sent to it any more.
  void Forget(Incarnation ended) { lines_.erase(ended.value()); }
  // Resends; forgets those that asked for the status or were refused, and went silent.
  void Tick(TimePoint now);

  // By all who joined and were heard of since `since`, but for those who have said that they leave
  // or have failed: they exit without reading on.
  bool all_acknowledged(TimePoint since) const;
  uint64_t malformed() const { return malformed_; }

 private:
  struct Line {
    Session session;
    PeerId peer;
    TimePoint heard{};
    bool joined = false;  // False for a guest.
    bool awaited = true;  // False once it has said that it exits.
  };
  void CountMalformed(TimePoint now, const PeerId& peer, const Status& why);
  void CountDropped(TimePoint now, const ControlMessage& message, const Status& why);
  bool MayBegin(TimePoint now, const PeerId& peer, const Packet& packet);
  void TrimGuests();

  const Duration resend_after_;
  const Transmit transmit_;
  std::map<uint64_t, Line> lines_;  // By session.
  uint64_t malformed_ = 0;
  TimePoint last_warning_{};
  uint64_t dropped_ = 0;
  TimePoint last_drop_warning_{};
};

}  // namespace dt::scheduler
