#include "server/log/log_replay.h"

#include "common/base/log.h"
#include "common/base/text.h"
#include "server/log/record_log_format.h"
#include "server/shard/record_codec.h"

namespace dt::server {
namespace {

constexpr uint64_t kBytesAtOnce = 16 << 20;
constexpr Duration kStallMax = seconds(60);

}  // namespace

Result<std::unique_ptr<LogReplay>> LogReplay::Open(const LogLocation& location,
                                                   const ShardSet& shards) {
  DT_TRY(RecordLogReader reader,
         RecordLogReader::Open({location.dir, location.executor, shards.generation(),
                                location.base->first_segment, location.sync}));
  return std::make_unique<LogReplay>(
      Key(), std::move(reader), RecordLog::Options{location.dir, location.executor, location.sync},
      shards);
}

LogReplay::LogReplay(Key, RecordLogReader reader, RecordLog::Options log, const ShardSet& shards)
    : reader_(std::move(reader)), log_(std::move(log)), generation_(shards.generation()) {}

Result<bool> LogReplay::Some(TimePoint now, ShardSet& shards) {
  if (!begun_.has_value()) begun_ = now;
  const uint64_t until = reader_.bytes_read() + kBytesAtOnce;
  while (reader_.bytes_read() < until) {
    if (!next_.has_value()) {
      DT_TRY(next_, reader_.Next());
      if (!next_.has_value()) return false;
      stalled_since_ = now;
    }
    DT_TRY(const bool followed, Follow(now, shards));
    if (!followed) return true;
    next_.reset();
  }
  return true;
}

// False if the record has to wait.
Result<bool> LogReplay::Follow(TimePoint now, ShardSet& shards) {
  Result<ShardRecord> record = DecodeRecord(next_->head, next_->keys, next_->gradients,
                                            shards.tables(), shards.shards_of_job());
  Status status = record.status();
  if (status.ok()) status = shards.Follow(record->shard, std::move(record->record));
  if (status.ok()) return true;
  if (status.code() == StatusCode::kResourceExhausted && now - stalled_since_ < kStallMax) {
    return false;
  }
  return DataLoss("the log cannot be followed at {}: {}", reader_.Where(), MessageOf(status));
}

Result<std::unique_ptr<RecordLog>> LogReplay::Finish(ShardSet& shards) {
  DT_TRY(RecordLogReader::End end, reader_.Finish());
  LogInfo("server.log_read",
          {{"records", end.records},
           {"bytes", BytesText(end.bytes)},
           {"torn_bytes", end.torn_bytes},
           {"seconds", begun_ ? SecondsBetween(*begun_, SystemClock().Now()) : 0}});
  if (!end.segments.empty()) {
    const LogSegment& last = end.segments.back();
    shards.SetLogEnd(fmt::format(
        "{}, byte {},", record_log::SegmentPath(log_.dir, log_.executor, last.number), last.bytes));
  }
  return RecordLog::Open(log_, generation_, end.next_segment, end.next_record,
                         std::move(end.segments));
}

}  // namespace dt::server
