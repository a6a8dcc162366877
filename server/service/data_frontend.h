// Where requests enter: decodes them, hands them to the handlers, and makes the answers. Pulls that
// must wait are parked, each with a deadline. A bad message is counted, logged once per peer and
// minute, and answered with its error; it never ends anything.
//
// Owned by the executor's thread; no socket, no clock.
#pragma once

#include <map>
#include <vector>

#include "common/base/clock.h"
#include "common/net/socket.h"
#include "common/wire/data.h"
#include "server/log/push_log.h"
#include "server/shard/shard_set.h"

namespace dt::server {

class DataFrontend {
 public:
  // `tables` of the job. A pull that waits longer than `pull_patience` is answered with Timeout.
  DataFrontend(std::vector<WireTable> tables, Duration pull_patience);

  // From now on requests are for these; without shards they are answered with Busy. Parked pulls
  // are answered with Stale. With a log, pushes go into it, and are acknowledged by OnCommit. Both
  // must outlive their use here.
  void Serve(ShardSet* shards, PushLog* log, std::vector<PeerMessage>& answers);
  // After every commit of the log: OK acknowledges the pushes since the last; else they are
  // answered with Busy, and pushes are refused until one is OK.
  void OnCommit(const Status& written, std::vector<PeerMessage>& answers);
  // Answers, of this and of parked requests, are appended.
  void OnMessage(TimePoint now, PeerMessage message, std::vector<PeerMessage>& answers);
  // Parked pulls whose time has come, either way.
  void OnTick(TimePoint now, std::vector<PeerMessage>& answers);
  // When OnTick must be called again.
  TimePoint NextDeadline() const;

  uint64_t bad_messages() const { return bad_messages_; }
  size_t parked() const { return parked_.size(); }

 private:
  struct Parked {
    PeerId peer;
    PullRequest request;
    TimePoint deadline;
  };

  void OnPull(TimePoint now, const PeerId& peer, PullRequest request,
              std::vector<PeerMessage>& answers);
  PeerMessage Answer(const PeerId& peer, uint64_t request, Status status, Frame values = {}) const;
  void OnBad(TimePoint now, const PeerId& peer, const Status& status);
  void ServeParked(std::vector<PeerMessage>& answers);
  void OnPush(TimePoint now, const PeerId& peer, PushRequest request, const Frames& raw,
              std::vector<PeerMessage>& answers);
  Status Ready() const;

  const std::vector<WireTable> tables_;
  const Duration pull_patience_;
  ShardSet* shards_ = nullptr;
  PushLog* log_ = nullptr;
  Status log_status_;  // Of the last commit.
  struct Unlogged {
    PeerId peer;
    uint64_t request = 0;
  };
  std::vector<Unlogged> unlogged_;  // Held, but not in the log yet.
  std::vector<Parked> parked_;      // In order of arrival, so by deadline.
  uint64_t served_at_ = 0;          // ShardSet::progress of the last try of all parked pulls.
  uint64_t bad_messages_ = 0;
  std::map<PeerId, TimePoint> last_logged_;
};

}  // namespace dt::server
