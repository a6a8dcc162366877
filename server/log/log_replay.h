// Replays a server's log into its shards, which follow its records. Passed over are records that
// are in the checkpoint already, and entries of shards that are no more here. A shard that was
// copied to here begins anew with the first part of its copy (logged_part.h); without that part,
// the checkpoint is newer than the copy. Owned by the executor's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/wire/data.h"
#include "server/log/log_location.h"
#include "server/log/record_log.h"
#include "server/log/record_log_reader.h"
#include "server/shard/shard_set.h"

namespace dt::server {

class LogReplay {
  struct Key {};

 public:
  // REQUIRES: `location` has a base, and `shards` holds the rows of that base.
  static Result<std::unique_ptr<LogReplay>> Open(const LogLocation& location,
                                                 const ShardSet& shards);
  LogReplay(Key, RecordLogReader reader, RecordLog::Options log,
            const ShardSet& shards);  // See Open.

  // Takes a part of a shard's copy. False: it must wait; it will be given again.
  using TakePart = std::function<Result<bool>(CopyRequest& part)>;

  // Follows some entries; returns false at the end of the log. Errors: DataLoss naming file and
  // offset, if the log is damaged or the shards refuse an entry.
  Result<bool> Some(TimePoint now, ShardSet& shards, const TakePart& take_part);
  // True if the next entry waits for the disk.
  bool stalled() const { return next_.has_value(); }
  // The log, open for more records. REQUIRES: Some returned false.
  Result<std::unique_ptr<RecordLog>> Finish(ShardSet& shards);

 private:
  Result<bool> Follow(TimePoint now, ShardSet& shards, const TakePart& take_part);
  Result<bool> FollowRecord(ShardSet& shards);
  Result<bool> FollowPart(const ShardSet& shards, const TakePart& take_part);

  RecordLogReader reader_;
  const RecordLog::Options log_;
  const Generation generation_;
  // A record that was refused as busy and is to be pushed again.
  std::optional<RecordLogReader::Record> next_;
  TimePoint stalled_since_{};           // When next_ was tried first.
  std::map<ShardId, uint64_t> copies_;  // The session of a copy whose first part was here.
  std::optional<TimePoint> begun_;
};

}  // namespace dt::server
