// A server's or worker's connection to the scheduler. Its own thread owns the socket and the
// Session: joins, sends heartbeats, resends, and notices when the scheduler is gone.
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
    const Network* traffic = nullptr;  // Whose bytes heartbeats tell; null: `network`.
    std::string scheduler;             // Endpoint.
    JoinMessage join;  // incarnation, wire_version, pid and host are filled in by Open.
    Duration join_timeout = seconds(30);  // For the scheduler to be there.
    std::stop_token stop = {};            // Ends the joining: Cancelled.
    Duration scheduler_outage =
        seconds(60);  // Silence longer than this ends the link (Unavailable).
  };
  // Returns when welcomed. Errors: Unavailable naming the address when nobody answers in time; what
  // the scheduler refused with.
  static Result<std::unique_ptr<ControlLink>> Open(const Options& options);
  virtual ~ControlLink() = default;

  virtual const WelcomeMessage& welcome() const = 0;
  // Any thread. In order, exactly once, as long as the link lives.
  virtual void Send(ControlMessage message) = 0;
  // One thread. The next message; KvValue messages go to Get and Split messages to NextSplit
  // instead. Timeout after `timeout`; Cancelled or the job's error after Stop (stopped() tells
  // which); Unavailable when the scheduler is silent too long.
  virtual Result<ControlMessage> Receive(Duration timeout) = 0;
  // Goes out with the next heartbeats, which add the process's stats. Any thread.
  virtual void SetProgress(const HeartbeatMessage& progress) = 0;
  // Rendezvous. Any thread but the link's.
  virtual void Put(const std::string& key, std::string value) = 0;
  virtual Result<std::string> Get(const std::string& key, Duration timeout) = 0;
  // What of a TrainOrder to do next. One thread at a time. Timeout: the answer is still to come,
  // call again.
  virtual Result<SplitMessage> NextSplit(uint64_t order, Duration timeout) = 0;
  // Set once Stop has arrived or the link is lost: whoever waits elsewhere polls it, and gives up.
  virtual bool ended() const = 0;
  virtual Status end_status() const = 0;  // OK if the job completed.
  // Waits until everything sent is acknowledged; at most `timeout`.
  virtual void Flush(Duration timeout) = 0;
};

// The end of a role: what the job ended with, if it has. Else the scheduler is told why the role
// ends, and gets a moment to hear it: Cancelled if `stop` was requested, or `worked`, an error.
Status EndRole(ControlLink& link, const Status& worked, std::stop_token stop);

// Asks a running scheduler how its job is doing, without joining: the JSON of `dovetail status`.
// Unavailable naming the address when nobody answers in time.
Result<std::string> RequestStatus(Network& network, const std::string& scheduler, Duration timeout);

// This process's own numbers.
ProcessStats ReadProcessStats(const Network* network);

}  // namespace dt
