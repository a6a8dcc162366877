// Where requests enter: decodes them, hands them to the handlers, and makes the answers. Pulls that
// must wait for a step or for the disk are parked, each with a deadline, and cost nothing until
// that step or disk read is done. A bad message is counted and answered with its error, and never
// ends the connection or the server; at most one line per peer, and ten in all, are logged per
// minute.
//
// Owned by the executor's thread; no socket, no clock.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/net/socket.h"
#include "common/wire/data.h"
#include "server/chain/chain_links.h"
#include "server/chain/shard_copies.h"
#include "server/shard/shard_set.h"

namespace dt::server {

class DataFrontend {
 public:
  // `tables`: those of the job. A pull that waits longer than `pull_timeout` is answered with
  // Timeout.
  DataFrontend(std::vector<WireTable> tables, Duration pull_timeout);

  // Requests are for these shards from now on; without shards they are answered with Busy. Parked
  // pulls are answered with Stale. `links`, `copies`: of the shards' chains; pushes are
  // acknowledged when they are stable. `logged`: the shards' records go into a log, and OnCommit
  // acknowledges pushes. All of these must outlive their use here.
  void Serve(ShardSet* shards, ChainLinks* links, ShardCopies* copies, bool logged,
             std::vector<PeerMessage>& answers);
  // Called after every commit of the log: OK acknowledges the pushes since the last commit;
  // otherwise they are answered with Busy, and pushes are refused until a commit is OK.
  void OnCommit(const Status& written, std::vector<PeerMessage>& answers);
  // Appends the answers to this message and to parked requests.
  void OnMessage(TimePoint now, PeerMessage message, std::vector<PeerMessage>& answers);
  // Takes messages of other servers that were here before the map that they need. Called when the
  // shards are those of their map, before the next message.
  void TakeEarly(TimePoint now);
  // Answers parked pulls that can be answered now or are past their deadline.
  void OnTick(TimePoint now, std::vector<PeerMessage>& answers);
  // Whether OnTick may have something to answer at once.
  bool may_answer() const;
  // When OnTick must be called again.
  TimePoint NextDeadline() const;

  // Why the shards cannot go on: they could not follow a record. OK while they can.
  const Status& failure() const { return failure_; }

  uint64_t bad_messages() const { return bad_messages_; }
  size_t parked() const { return parked_.size(); }

 private:
  // Who gets an answer, and the shard map that its sender knew.
  struct Asker {
    PeerId peer;
    uint64_t request = 0;
    MapVersion map;
  };
  struct Parked {
    PeerId peer;
    PullRequest request;
    TimePoint deadline;
    size_t bytes() const;
    Asker asker() const { return {peer, request.request, request.stamp.map}; }
  };
  using ParkedById = std::map<uint64_t, Parked>;

  // Messages of other servers.
  void OnRecords(TimePoint now, const PeerId& peer, RecordsRequest message);
  void OnCopy(TimePoint now, const PeerId& peer, CopyRequest message);
  bool IsEarly(const Stamp& stamp, MapVersion since) const;
  void KeepEarly(uint64_t bytes, std::function<void(TimePoint)> take);

  void OnPull(TimePoint now, const PeerId& peer, PullRequest request,
              std::vector<PeerMessage>& answers);
  PeerMessage Answer(const Asker& to, Status status, std::vector<ShardId> refused = {},
                     Frame values = {}) const;
  void OnBad(TimePoint now, const PeerId& peer, const Status& status);
  Status Park(TimePoint now, const PeerId& peer, PullRequest request);
  void ServeParked(std::vector<PeerMessage>& answers);
  // False if the pull must wait longer.
  bool ServeOne(ParkedById::iterator parked, std::vector<PeerMessage>& answers);
  ParkedById::iterator Unpark(ParkedById::iterator parked);
  void OnPush(TimePoint now, const PeerId& peer, PushRequest request,
              std::vector<PeerMessage>& answers);
  Status Ready() const;
  // What must be stable before a push of these pieces counts: all that their shards have by now.
  std::vector<std::pair<ShardId, Position>> UnstableOf(const ShardPieces& pieces,
                                                       std::span<const ShardId> refused) const;
  void AnswerStable(std::vector<PeerMessage>& answers);

  const std::vector<WireTable> tables_;
  const Duration pull_timeout_;
  ShardSet* shards_ = nullptr;
  ChainLinks* links_ = nullptr;
  ShardCopies* copies_ = nullptr;
  Status failure_;
  bool logged_to_disk_ = false;
  Status log_status_;  // Result of the last commit.
  struct Unlogged {
    Asker asker;
    std::vector<ShardId> refused;
  };
  std::vector<Unlogged> unlogged_;  // Pushes that are held, but not in the log yet.

  struct Unstable {  // A push that is held, but not by all members of its shards' chains.
    Asker asker;
    std::vector<ShardId> refused;
    std::vector<std::pair<ShardId, Position>> records;
  };
  std::map<std::pair<PeerId, uint64_t>, Unstable> unstable_;  // By sender and request.
  uint64_t stable_at_ = 0;  // ChainLinks::progress when they were last looked through.
  ParkedById parked_;       // Ids ascend with arrival, and so with the deadline.
  uint64_t next_id_ = 0;
  // Ids of parked pulls; each is in one of the two sets.
  std::set<std::pair<Step, uint64_t>> wait_for_step_;
  std::set<uint64_t> wait_for_disk_;
  // ShardSet::progress and disk_progress when parked pulls were last tried.
  uint64_t served_at_ = 0, disk_served_at_ = 0;
  struct Load {
    size_t pulls = 0, bytes = 0;
  };
  std::map<PeerId, Load> parked_of_;  // By peer; only peers with parked pulls.
  size_t parked_bytes_ = 0;

  // Records and parts of copies of a newer map than that of the shards. Without them, each change
  // of the map would cost the pause after which they are sent again.
  struct Early {
    uint64_t bytes = 0;
    std::function<void(TimePoint)> take;
  };
  std::deque<Early> early_;
  uint64_t early_bytes_ = 0;
  MapVersion early_at_;  // The map when they were last tried.

  uint64_t bad_messages_ = 0;
  std::set<PeerId> logged_;  // Peers logged since logged_since_.
  TimePoint logged_since_{};
};

}  // namespace dt::server
