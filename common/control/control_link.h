// The connection of a server or worker to the scheduler. A thread of its own uses the socket and
// the LinkCore: it joins, sends heartbeats, resends messages, and notices when the scheduler is
// gone.
#pragma once

#include <memory>
#include <stop_token>

#include "common/base/clock.h"
#include "common/control/messages.h"
#include "common/net/socket.h"

namespace dt {

class ControlLink {
 public:
  struct Options {
    Network* network = nullptr;
    // The network whose bytes heartbeats report; null: `network`.
    const Network* traffic = nullptr;
    std::string scheduler;  // The scheduler's endpoint.
    // Open fills in incarnation, wire_version, pid and host.
    JoinMessage join;
    Duration join_timeout = seconds(30);  // Limit of the wait for a scheduler.
    std::stop_token stop = {};            // A stop ends the joining with Cancelled.
    // Gets each newer map, on the link's thread, instead of Receive. For those that may be at an
    // order for long.
    std::function<void(ShardMap)> on_map = {};
    // For workers. Told of each NewView when it arrives, on the link's thread; Receive returns it,
    // too. Orders that Receive has not returned before are dropped.
    std::function<void(ViewNumber)> on_view = {};
    // Adds to each heartbeat what the threads of the process do; called on the link's thread.
    std::function<void(HeartbeatMessage&)> on_heartbeat = {};
    // The link ends (Unavailable) if the scheduler is silent for longer.
    Duration scheduler_outage = seconds(60);
  };
  // Returns when the scheduler has welcomed the process. Errors: Unavailable, with the address, if
  // nobody answers in time; the error with which the scheduler refused.
  static Result<std::unique_ptr<ControlLink>> Open(const Options& options);
  virtual ~ControlLink() = default;

  virtual const WelcomeMessage& welcome() const = 0;
  // Delivers messages in order, exactly once, as long as the link lives. Any thread.
  virtual void Send(ControlMessage message) = 0;
  // The next message, except KvValue and Split messages, which Get and NextSplit return. An order
  // that was received has begun: the link gives back others if the scheduler recalls them. A worker
  // that waits for a view drops the orders, which come again in that view. Timeout after `timeout`;
  // once the link has ended, Cancelled if the job completed, else end_status(). One thread.
  enum class Orders { kBegin, kDrop };
  virtual Result<ControlMessage> Receive(Duration timeout, Orders orders) = 0;
  // The next heartbeats carry `progress` and the process's stats. Any thread.
  virtual void SetProgress(const HeartbeatMessage& progress) = 0;
  // Publish and fetch small values, with which workers find each other. Timeout: the value has not
  // come yet; call again. Any thread except the link's.
  virtual void Put(const std::string& key, std::string value) = 0;
  virtual Result<std::string> Get(const std::string& key, Duration timeout) = 0;
  // The next part of a TrainOrder. Timeout: the reply has not come yet; call again. One thread at a
  // time.
  virtual Result<SplitMessage> NextSplit(uint64_t order, Duration timeout) = 0;
  // Set once Stop has arrived or the link is lost. Code that waits for other things polls it, and
  // then gives up.
  virtual bool ended() const = 0;
  virtual Status end_status() const = 0;  // OK if the job completed.
  // Waits until everything that was sent is acknowledged, at most `timeout`.
  virtual void Flush(Duration timeout) = 0;
};

// Ends a role. If the job has ended, returns its end status. Otherwise tells the scheduler why the
// role ends, waits a moment for the acknowledgement, and returns Cancelled if `stop` was requested,
// or else the error `worked`.
Status EndRole(ControlLink& link, const Status& worked, std::stop_token stop);

// Tells a running scheduler, without joining, that the job is to go on without a server. OK: it has
// begun, or was begun before. Errors: the scheduler's, if it may not be; Unavailable, with the
// address, if nobody answers in time.
Status RequestDrain(Network& network, const std::string& scheduler, ProcessId server,
                    Duration timeout);

// Tells a running scheduler, without joining, how many servers or workers the job is to have.
// Errors: as those of RequestDrain.
Status RequestScale(Network& network, const std::string& scheduler, Role role, uint32_t count,
                    Duration timeout);

// Asks a running scheduler for the job's status, without joining: the JSON of `dovetail status`.
// Unavailable, with the address, if nobody answers in time.
Result<std::string> RequestStatus(Network& network, const std::string& scheduler, Duration timeout);

}  // namespace dt
