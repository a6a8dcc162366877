// Replays a server's log into its shards, which follow its records. Records that are in the
// checkpoint already are passed over. Owned by the executor's thread.
#pragma once

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

  // Follows some records; returns false at the end of the log. Errors: DataLoss naming file and
  // offset, if the log is damaged or the shards refuse a record.
  Result<bool> Some(TimePoint now, ShardSet& shards);
  // True if the next record waits for rows from the disk.
  bool stalled() const { return next_.has_value(); }
  // The log, open for more records. REQUIRES: Some returned false.
  Result<std::unique_ptr<RecordLog>> Finish(ShardSet& shards);

 private:
  Result<bool> Follow(TimePoint now, ShardSet& shards);

  RecordLogReader reader_;
  const RecordLog::Options log_;
  const Generation generation_;
  // A record that was refused as busy and is to be pushed again.
  std::optional<RecordLogReader::Record> next_;
  TimePoint stalled_since_{};  // When next_ was tried first.
  std::optional<TimePoint> begun_;
};

}  // namespace dt::server
