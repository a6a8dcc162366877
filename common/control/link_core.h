// The server's or worker's side of a connection to the scheduler: joins, sends heartbeats and
// messages, resends what was lost, and notices when the scheduler is gone. It has no thread, socket
// or clock: ControlLink has them, and simulations use their own.
//
//   Join ──▶ Welcome ──▶ messages both ways ──▶ Stop, or silence for `outage`
//     └────▶ Refused: ended
//
// A scheduler that was restarted does not know the session. Then the link begins a new one: it
// joins again, under the same incarnation and id, and says again what may be lost (unsettled.h).
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/control/messages.h"
#include "common/control/session.h"
#include "common/control/unsettled.h"

namespace dt {

class LinkCore {
 public:
  struct Options {
    JoinMessage join;               // Its incarnation identifies the process's sessions.
    std::string scheduler = {};     // The scheduler's address, for errors.
    Duration outage = seconds(60);  // The link ends after this time of silence.
    std::function<HeartbeatMessage()> progress = {};  // Called for every heartbeat.
  };
  LinkCore(TimePoint now, Options options);

  void OnPacket(TimePoint now, Packet packet);
  // The message goes out with the next TakePackets, or later: once the scheduler has the Join, and
  // when the session's window has room.
  void Send(ControlMessage message);
  // Sends heartbeats and overdue packets. Call at least four times per resend interval.
  void Tick(TimePoint now);
  std::vector<Packet> TakePackets();
  // The messages that have arrived, in order, except Welcome, Refused and Stop.
  std::vector<ControlMessage> TakeMessages() { return std::exchange(incoming_, {}); }

  const std::optional<WelcomeMessage>& welcome() const { return welcome_; }
  // All messages are sent and acknowledged.
  bool all_acknowledged() const {
    return joined_ && outgoing_.empty() && session_.all_acknowledged();
  }
  // Set by Stop, by a refusal and by silence. The status is OK if the job is complete.
  bool ended() const { return ended_; }
  const Status& end_status() const { return end_status_; }

 private:
  void BeginAnew(TimePoint now);
  void Join(TimePoint now);
  void Take(TimePoint now, ControlMessage message);
  void SendOutgoing(TimePoint now);
  Packet Heartbeat() const;
  void End(Status status);

  const Options options_;
  Session session_;
  bool join_sent_ = false, joined_ = false;  // joined_: the scheduler has this session's Join.
  uint64_t term_ = 0;                        // The highest of a scheduler so far.
  Unsettled unsettled_;
  std::optional<WelcomeMessage> welcome_;
  std::deque<ControlMessage> outgoing_;
  std::vector<ControlMessage> incoming_;
  std::vector<Packet> acknowledgements_, packets_;
  TimePoint last_heard_, next_heartbeat_{};
  bool ended_ = false;
  bool sent_last_heartbeat_ = false;  // The last heartbeat was sent.
  Status end_status_;
};

// The status that the code and the problem of a message describe.
Status StatusOf(StatusCode code, const Problem& problem);

}  // namespace dt
