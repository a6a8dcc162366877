// Copies shards to servers that are to become members of their chains (Chain::syncing), and takes
// what is copied to here. A tail copies one shard after the other:
//
//   tail                                        newcomer
//   parts 0, 1, … (a few ahead) ──────────────▶ rows into memory, and from there to disk
//        ◀────────────────────── "all before part n is taken"
//   the last part ────────────────────────────▶ clock, what is held, counts, position
//   records after that position ──────────────▶ as in a chain (chain_links.h)
//
// The scheduler is told that the newcomer has caught up (TakeCopied), and makes it a member. A part
// that is lost is sent again. If another server becomes the tail, or the shard begins anew, so does
// the copying: the newcomer drops what it has and starts with an empty shard.
//
// Owned by the executor's thread; no socket, no clock.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/control/reports.h"
#include "common/wire/data.h"
#include "server/chain/chain_links.h"
#include "server/chain/shard_copy.h"
#include "server/shard/shard_set.h"
#include "server/storage/disk_tier.h"

namespace dt::server {

class ShardCopies {
 public:
  // `bytes_per_second`: limit for what is copied from here, unless rows change faster; 0: none.
  // `on_part` is called after each part that is taken here; null: it is not.
  explicit ShardCopies(uint64_t bytes_per_second,
                       std::function<void(const CopyRequest&)> on_part = nullptr)
      : bytes_per_second_(bytes_per_second), on_part_(std::move(on_part)) {}

  // Ends all copying, from here and to here. What is still to be copied begins anew. Call it before
  // the shards' rows or their tier are replaced.
  void Reset();

  // Messages of other servers; those that do not count are passed over. Errors: Malformed, if no
  // server sends such a message.
  Status OnCopy(CopyRequest message, ShardSet& shards);
  void OnCopyAck(TimePoint now, const CopyAckRequest& message, const ShardSet& shards,
                 ChainLinks& links);

  // One turn: takes the next part of each shard that is copied to here, if there is room, makes and
  // sends the next ones of the shards that are copied from here. Errors: those of the disk.
  Status Work(TimePoint now, ShardSet& shards, DiskTier& tier, ChainLinks& links,
              std::vector<ChainLinks::Letter>& letters);
  // Takes the next part of a shard that is being copied to here. False: it must wait for the disk.
  // Errors: Malformed, if no server makes such a part. REQUIRES: the shard is here.
  static Result<bool> Apply(CopyRequest& part, ShardSet& shards, DiskTier& tier);
  bool idle() const { return outgoing_.empty() && incoming_.empty(); }
  // When Work has something to do again if nothing happens; TimePoint::max(): nothing to do.
  TimePoint next_work() const { return next_work_; }

  // Nothing is copied to what is here of this shard, as it is to be removed.
  void Drop(ShardId shard);
  // Shards that were dropped, by the caller or because their copying begins anew. The caller
  // removes them, or drops them again until it can, and adds them empty when nothing of them is
  // left.
  std::set<ShardId> TakeDropped() { return std::exchange(dropped_, {}); }

  // Shards whose copy has caught up: told now and then until the map makes the server a member.
  struct Copied {
    ShardId shard;
    ProcessId to;
    MapVersion since;
    Generation generation;
  };
  std::vector<Copied> TakeCopied() { return std::exchange(copied_, {}); }

  // Adds how far the copies from here are.
  void AddTo(ChainReport& report, const ShardSet& shards) const;

 private:
  struct Outgoing {  // A shard that is copied from here.
    ProcessId to;
    std::string endpoint;
    MapVersion since;
    uint64_t session = 0;
    std::unique_ptr<ShardCopy> reader;  // Null once the last part is made.
    std::deque<CopyRequest> parts;      // Not acknowledged.
    uint64_t acknowledged = 0;          // Parts before this one; it is the first of `parts`.
    size_t sent = 0;                    // The first of `parts` that are sent.
    TimePoint send_again{}, tell_again{};
    bool done = false;
    uint64_t rows = 0, bytes = 0;  // In the parts so far; in those that are acknowledged.
  };
  struct Incoming {  // A shard that is copied to here.
    ProcessId from;
    uint64_t session = 0;
    uint64_t next = 0;
    bool done = false, tell = false;
    // Parts from `next` on, at most kPartsAhead. They wait for a turn each, and for room or rows
    // from disk.
    std::deque<CopyRequest> waiting;
  };

  void FollowMap(ShardSet& shards, DiskTier& tier);
  Status MakeParts(TimePoint now, ShardId id, Outgoing& out, ShardSet& shards, ChainLinks& links);
  void Send(TimePoint now, ShardId id, Outgoing& out, Generation generation,
            std::vector<ChainLinks::Letter>& letters);
  // False: it must wait.
  Result<bool> Take(ShardId id, Incoming& in, ShardSet& shards, DiskTier& tier, ChainLinks& links);
  static Status TakeEnd(const CopyRequest& last, ShardSet& shards);

  const uint64_t bytes_per_second_;
  const std::function<void(const CopyRequest&)> on_part_;
  std::map<ShardId, Outgoing> outgoing_;
  std::map<ShardId, Incoming> incoming_;
  std::set<ShardId> dropped_;
  std::vector<Copied> copied_;
  uint64_t sessions_ = 0;
  uint64_t copied_bytes_ = 0;  // Acknowledged since the beginning.
  TimePoint may_send_{};       // The limit allows the next part then.
  TimePoint next_work_ = TimePoint::max();
};

}  // namespace dt::server
