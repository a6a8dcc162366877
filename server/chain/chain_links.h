// An executor's part of the chains of its shards: hands on each record to the next member, and
// tells the member before it what the rest of the chain has.
//
//             records, in order of their numbers
//   head ──────────────▶ member ──────────────▶ tail
//        ◀──────────────        ◀──────────────
//         "all up to record n is here, and on all members after me"
//
// A record that the tail has is stable: it survives the loss of all other members. A member keeps a
// record until the member after it has acknowledged it. Both directions are one-way messages
// between the servers' sockets, and a message may be lost: what is not acknowledged is sent again,
// from the first such record on, and what comes twice is dropped by its number.
//
// When the map changes, a chain has a new version (Chain::since). A member takes records only from
// its predecessor of the same version, and acknowledgements only from its successor of the same
// version. So a member that was removed and does not know it can acknowledge nothing. A new
// successor gets everything that is kept, and drops what it has.
//
// Owned by the executor's thread; no socket, no clock.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/cluster/answer_watch.h"
#include "common/net/frame.h"
#include "common/net/frame_pool.h"
#include "common/wire/data.h"
#include "server/shard/record.h"
#include "server/shard/record_codec.h"
#include "server/shard/shard_set.h"

namespace dt::server {

class ChainLinks {
 public:
  // A message to an executor of another server.
  struct Letter {
    std::string endpoint;
    Frames frames;
  };

  // Limit for the records that are kept; pushes are refused as Busy above it.
  static constexpr uint64_t kKeptBytesMax = uint64_t{256} << 20;

  // `frames` makes the messages, and outlives this object. `lease`: see silent().
  explicit ChainLinks(FramePool* frames = &FramePool::Private(), Duration lease = seconds(3))
      : frames_(frames), watch_(lease) {}

  // Takes up the chains of `shards`: at the start, and when their map has changed.
  void SetMap(TimePoint now, const ShardSet& shards);
  // The shards begin anew: nothing of before counts.
  void Reset(TimePoint now, const ShardSet& shards);

  // This server, the tail, has copied the shard to `to`, which gets all records from now on. They
  // are kept until Release, when all that was copied has arrived. What `to` does not have is not
  // stable.
  void BeginFollowing(const ShardSet& shards, ShardId shard, ProcessId to);
  void Release(TimePoint now, ShardId shard);
  // The shard has been copied to here, and its tail sends records from now on.
  void FollowTail(const ShardSet& shards, ShardId shard);

  // True if a shard has other members.
  bool active() const { return !links_.empty(); }

  // Called for each record that a shard here makes.
  void OnRecord(ShardId shard, const Record& record);

  // Messages of other members; those that do not count are passed over. Errors: Malformed, if no
  // server sends such a message; DataLoss, if the shards cannot follow a record.
  Status OnRecords(RecordsRequest message, ShardSet& shards);
  Status OnAcks(TimePoint now, const AcksRequest& message, ShardSet& shards);

  // Lets shards follow records that had to wait for rows from disk. Errors: DataLoss, as OnRecords.
  Status Resume(ShardSet& shards);

  // Appends the messages to send now.
  void TakeLetters(TimePoint now, const ShardSet& shards, std::vector<Letter>& letters);
  // True if TakeLetters has left some, so that one call does not take long.
  bool has_more() const { return has_more_; }

  // True if all members have this record.
  bool IsStable(ShardId shard, Position position) const;
  // Changes whenever an answer of IsStable may change.
  uint64_t progress() const { return progress_; }
  // Servers that get records from here and have not said anything for a lease.
  std::vector<ProcessId> silent() const { return watch_.Silent(); }
  uint64_t kept_bytes() const { return kept_bytes_; }
  bool full() const { return kept_bytes_ >= kKeptBytesMax; }

 private:
  struct Peer {
    ProcessId server;
    std::string endpoint;
    friend bool operator==(const Peer&, const Peer&) = default;
  };
  struct Kept {
    Position position = 0;
    RecordBytes bytes;
  };
  // A shard with other members.
  struct Link {
    MapVersion since;
    MapVersion copied_since;            // Of the copying from here or to here, if there is any.
    std::optional<Peer> before, after;  // Empty: this is the head; the tail.
    // Towards the tail. Without a member after this one, nothing is kept.
    std::deque<Kept> kept;   // Records that are not stable, in order.
    bool held_back = false;  // Nothing is sent until Release.
    size_t sent = 0;         // The first records of `kept` that are sent.
    TimePoint send_again{};
    Duration pause{};
    // Towards the head.
    std::deque<Record> waiting;  // Arrived, but their rows are on disk.
    Position told = 0;           // Acknowledged to the member before this one.
    bool tell = false;           // It has sent something, and wants to hear from this one.
  };
  struct Told {  // What a member before this one knows.
    Step complete = 0;
    TimePoint again{};
  };

  struct Neighbours {
    MapVersion since;
    std::optional<Peer> before, after;
  };
  void SetUp(TimePoint now, const Shard& shard, Neighbours next, Link& link);
  static Peer PeerOf(const ShardMap& map, ProcessId server, ShardId shard);
  static uint64_t BytesOf(const Kept& kept);
  // Up to which record all members from this one on have them.
  static Position StableOf(const Link& link, const Shard& shard);
  void Forget(Link& link, Position until);
  Status Follow(ShardId shard, Link& link, ShardSet& shards);
  void WriteAcks(TimePoint now, const ShardSet& shards, std::vector<Letter>& letters);
  void WriteRecords(TimePoint now, const ShardSet& shards, std::vector<Letter>& letters);
  Stamp StampFor(const ShardSet& shards, ProcessId server) const;

  FramePool* frames_;
  std::map<ShardId, Link> links_;
  std::map<std::string, Told> told_;  // By endpoint.
  AnswerWatch watch_;
  uint64_t kept_bytes_ = 0;
  uint64_t progress_ = 0;
  bool has_more_ = false;
};

}  // namespace dt::server
