// A server's or worker's side of its connection to the scheduler: joins, sends heartbeats and what
// it is told to say, sends again what was lost, and notices when the scheduler is gone. Without
// thread, socket or clock: ControlLink has those, and simulations have their own.
//
//   Join ──▶ Welcome ──▶ messages both ways ──▶ Stop, or silence for `outage`
//     └────▶ Refused: ended
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/control/messages.h"
#include "common/control/session.h"

namespace dt {

class LinkCore {
 public:
  struct Options {
    JoinMessage join;                                 // Its incarnation names the session.
    std::string scheduler = {};                       // Its address, for errors.
    Duration outage = seconds(60);                    // Silence that ends the link.
    std::function<HeartbeatMessage()> progress = {};  // Asked for every heartbeat.
  };
  LinkCore(TimePoint now, Options options);

  void OnPacket(TimePoint now, Packet packet);
  // Goes out with the next TakePackets, or when there is room for it.
  void Send(ControlMessage message) { outgoing_.push_back(std::move(message)); }
  // Heartbeats, and what is to be sent again. At least four times in a resend's time.
  void Tick(TimePoint now);
  std::vector<Packet> TakePackets();
  // What has arrived, in order; Welcome, Refused and Stop are not among it.
  std::vector<ControlMessage> TakeMessages() { return std::exchange(incoming_, {}); }

  const std::optional<WelcomeMessage>& welcome() const { return welcome_; }
  // All that was to be said is acknowledged.
  bool all_said() const { return outgoing_.empty() && session_.all_acknowledged(); }
  // Set by Stop, by a refusal and by silence. The status is OK if the job is complete.
  bool ended() const { return ended_; }
  const Status& end_status() const { return end_status_; }

 private:
  void Take(TimePoint now, ControlMessage message);
  void SendOutgoing(TimePoint now);
  Packet Heartbeat() const;
  void End(Status status);

  const Options options_;
  Session session_;
  std::optional<WelcomeMessage> welcome_;
  std::deque<ControlMessage> outgoing_;
  std::vector<ControlMessage> incoming_;
  std::vector<Packet> acknowledgements_, packets_;
  TimePoint last_heard_, next_heartbeat_{};
  bool ended_ = false;
  bool said_last_ = false;  // The figures at the end were sent.
  Status end_status_;
};

// The status that a message carries.
Status StatusOf(StatusCode code, const Problem& problem);

}  // namespace dt
