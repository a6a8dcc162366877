// A server's log, pushed again into its shards: the same requests, through the same functions, in
// the same order. Owned by the executor's thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/wire/data.h"
#include "server/log/log_location.h"
#include "server/log/push_log.h"
#include "server/log/push_log_reader.h"
#include "server/shard/shard_set.h"

namespace dt::server {

class LogReplay {
  struct Key {};

 public:
  // REQUIRES: `location` has a base, whose rows `shards` hold.
  static Result<std::unique_ptr<LogReplay>> Open(const LogLocation& location,
                                                 const ShardSet& shards);
  LogReplay(Key, PushLogReader reader, PushLog::Options log, const ShardSet& shards);  // See Open.

  // Pushes some records; false at the end of the log. DataLoss naming file and offset: the log is
  // damaged, or holds what these shards do not take.
  Result<bool> Some(TimePoint now, ShardSet& shards);
  // The next record waits, for rows that come from the disk.
  bool stalled() const { return next_.has_value(); }
  // The log as it goes on. REQUIRES: Some gave false.
  Result<std::unique_ptr<PushLog>> Finish(ShardSet& shards);

 private:
  Result<bool> Push(TimePoint now, ShardSet& shards);

  PushLogReader reader_;
  const PushLog::Options log_;
  const Generation generation_;
  std::vector<WireTable> tables_;
  std::optional<PushLogReader::Record> next_;  // Refused with Busy: to be pushed again,
  TimePoint stalled_since_{};                  // since then.
  std::optional<TimePoint> begun_;
};

}  // namespace dt::server
