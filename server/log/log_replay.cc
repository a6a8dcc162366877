#include "server/log/log_replay.h"

#include "common/base/log.h"
#include "common/base/text.h"
#include "server/log/push_log_format.h"
#include "server/shard/handlers.h"

namespace dt::server {
namespace {

constexpr uint64_t kBytesAtOnce = 16 << 20;
constexpr Duration kStallMax = seconds(60);

}  // namespace

Result<std::unique_ptr<LogReplay>> LogReplay::Open(const LogLocation& location,
                                                   const ShardSet& shards) {
  DT_TRY(PushLogReader reader,
         PushLogReader::Open({location.dir, location.executor, shards.generation(),
                              location.base->first_segment, location.sync}));
  return std::make_unique<LogReplay>(
      Key(), std::move(reader), PushLog::Options{location.dir, location.executor, location.sync},
      shards);
}

LogReplay::LogReplay(Key, PushLogReader reader, PushLog::Options log, const ShardSet& shards)
    : reader_(std::move(reader)), log_(std::move(log)), generation_(shards.generation()) {
  for (const TableSpec& table : shards.tables()) tables_.push_back({table.dim, table.wire});
}

Result<bool> LogReplay::Some(TimePoint now, ShardSet& shards) {
  if (!begun_.has_value()) begun_ = now;
  const uint64_t until = reader_.bytes_read() + kBytesAtOnce;
  while (reader_.bytes_read() < until) {
    if (!next_.has_value()) {
      DT_TRY(next_, reader_.Next());
      if (!next_.has_value()) return false;
      stalled_since_ = now;
    }
    DT_TRY(const bool pushed, Push(now, shards));
    if (!pushed) return true;
    next_.reset();
  }
  return true;
}

// False if the record has to wait.
Result<bool> LogReplay::Push(TimePoint now, ShardSet& shards) {
  Result<DataRequest> request = DecodeDataRequest(next_->frames, tables_);
  Status status = request.status();
  if (status.ok() && request->kind != DataRequest::Kind::kPush) status = Malformed("it is no push");
  if (status.ok()) status = HandlePush(shards, std::move(request->push)).status;
  if (status.ok()) return true;
  if (status.code() == StatusCode::kResourceExhausted && now - stalled_since_ < kStallMax) {
    return false;
  }
  return DataLoss("the log cannot be followed at {}: {}", reader_.Where(), MessageOf(status));
}

Result<std::unique_ptr<PushLog>> LogReplay::Finish(ShardSet& shards) {
  DT_TRY(PushLogReader::End end, reader_.Finish());
  LogInfo("server.log_read",
          {{"records", end.records},
           {"bytes", BytesText(end.bytes)},
           {"torn_bytes", end.torn_bytes},
           {"seconds", begun_ ? SecondsBetween(*begun_, SystemClock().Now()) : 0}});
  if (!end.segments.empty()) {
    const LogSegment& last = end.segments.back();
    shards.SetLogEnd(fmt::format(
        "{}, byte {},", push_log::SegmentPath(log_.dir, log_.executor, last.number), last.bytes));
  }
  return PushLog::Open(log_, generation_, end.next_segment, end.next_record,
                       std::move(end.segments));
}

}  // namespace dt::server
