#include "server/log/log_replay.h"

#include "common/base/log.h"
#include "common/base/text.h"
#include "server/log/logged_part.h"
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

Result<bool> LogReplay::Some(TimePoint now, ShardSet& shards, const TakePart& take_part) {
  if (!begun_.has_value()) begun_ = now;
  const uint64_t until = reader_.bytes_read() + kBytesAtOnce;
  while (reader_.bytes_read() < until) {
    if (!next_.has_value()) {
      DT_TRY(next_, reader_.Next());
      if (!next_.has_value()) return false;
      stalled_since_ = now;
    }
    DT_TRY(const bool followed, Follow(now, shards, take_part));
    if (!followed) return true;
    next_.reset();
  }
  return true;
}

// False if the entry has to wait.
Result<bool> LogReplay::Follow(TimePoint now, ShardSet& shards, const TakePart& take_part) {
  Result<bool> followed =
      IsPart(next_->head) ? FollowPart(shards, take_part) : FollowRecord(shards);
  Status status = followed.status();
  if (followed.ok() && *followed) return true;
  if (followed.ok()) status = Busy("it waits for rows on disk");
  if (status.code() == StatusCode::kResourceExhausted && now - stalled_since_ < kStallMax) {
    return false;
  }
  return DataLoss("the log cannot be followed at {}: {}", reader_.Where(), MessageOf(status));
}

Result<bool> LogReplay::FollowRecord(ShardSet& shards) {
  DT_TRY(ShardRecord record, DecodeRecord(next_->head, next_->keys, next_->gradients,
                                          shards.tables(), shards.shards_of_job()));
  if (!shards.IsMember(record.shard)) return true;
  DT_TRY_STATUS(shards.Follow(record.shard, std::move(record.record)));
  return true;
}

Result<bool> LogReplay::FollowPart(const ShardSet& shards, const TakePart& take_part) {
  DT_TRY(CopyRequest part, DecodePart(next_->head, next_->gradients, shards.tables()));
  const ShardId shard = part.shard;
  if (shard.value() >= shards.shards_of_job()) return Malformed("shard {}", shard.value());
  if (part.number == 0) copies_[shard] = part.session;
  const auto copy = copies_.find(shard);
  const bool begun = copy != copies_.end() && copy->second == part.session;
  if (!begun || !shards.view().map.chains[shard.value()].Has(shards.self())) return true;
  return take_part(part);
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
