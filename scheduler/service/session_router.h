// The sessions of all processes over one socket: turns packets into messages of known senders, and
// messages into packets. Malformed packets are counted and dropped. One thread; time is passed in;
// packets go out through `Transmit`.
//
// A process that only asked for the status, or was refused, is a guest. Guests cannot exclude
// others: at most 64 of them have a session, and their sessions hold at most 64 MiB. The first
// guest to be dropped is the one that was silent for longest, or the one that holds most.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <set>
#include <vector>

#include "common/control/messages.h"
#include "common/control/session.h"
#include "common/net/socket.h"
#include "scheduler/membership/membership.h"

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

  // Call it before the first packet.
  void SetTerm(Term term) { term_ = term; }
  // The limit is low for guests and unknown sessions, but large enough for a Join.
  size_t PayloadBytesMax(uint64_t session) const;
  // A session must begin with a Join, a StatusRequest, a DrainRequest or a ScaleRequest. The caller
  // answers them.
  // The sender of another packet, whose session is unknown here, is told so. A process's later
  // session takes the place of its earlier one.
  std::vector<Arrived> OnPacket(TimePoint now, const PeerId& peer, Packet packet);
  // Drops the message if the session is unknown or 1,024 messages behind.
  void Send(TimePoint now, Incarnation to, const ControlMessage& message);
  // The process has ended: nothing more is sent to it.
  void Forget(Incarnation ended) { sessions_.erase(ended.value()); }
  // Resends, and forgets those that have fallen silent: guests soon, others after ten minutes.
  void Tick(TimePoint now);

  // Not all is acknowledged before these have joined. For a job that had ended before this
  // scheduler began: they may not have heard of it from the one before.
  void Expect(const std::list<Member>& members);
  // Whether everything is acknowledged by all processes that joined and were heard after `since`.
  // Processes that announced that they leave or failed do not count, because they exit without
  // reading.
  bool all_acknowledged(TimePoint since) const;
  uint64_t malformed() const { return malformed_; }

 private:
  struct PeerSession {
    Session session;
    PeerId peer;
    TimePoint heard{};
    bool joined = false;  // False for a guest.
    bool awaited = true;  // False once it has announced that it exits.
  };
  void CountMalformed(TimePoint now, const PeerId& peer, const Status& why);
  void CountDropped(TimePoint now, const ControlMessage& message, const Status& why);
  bool MayBegin(TimePoint now, const PeerId& peer, const Packet& packet);
  // The session of the packet, which may begin with it; null if the packet is of none.
  PeerSession* SessionOf(TimePoint now, const PeerId& peer, const Packet& packet);
  void TrimGuests();

  void Out(const PeerId& peer, Packet packet) const;

  const Duration resend_after_;
  const Transmit transmit_;
  Term term_;
  std::map<uint64_t, PeerSession> sessions_;  // Keyed by session.
  std::set<uint64_t> expected_;
  uint64_t malformed_ = 0;
  TimePoint last_warning_{};
  uint64_t dropped_ = 0;
  TimePoint last_drop_warning_{};
};

}  // namespace dt::scheduler
