// Reads a push log back after its process ended, however it ended.
//
// A record at the end of the last segment that is not whole was never acknowledged: it is cut off.
// It is such a one if the file ends within it, or if the file's last eight bytes are zero (the file
// system made room and the power went before the data came). Anything else that does not hold is
// damage: DataLoss, naming file and offset. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/net/frame.h"
#include "server/log/push_log.h"

namespace dt::server {

class PushLogReader {
 public:
  struct Options {
    std::string dir;
    uint32_t executor = 0;
    Generation generation;       // Segments of a later one are passed over.
    uint64_t first_segment = 1;  // Those before do not count.
    bool sync = false;           // What is cut off stays so when the power goes.
  };
  struct Record {
    Step step = 0;
    Frames frames;
  };
  // The log as it goes on: see PushLog::Open.
  struct End {
    uint64_t next_segment = 1, next_record = 1;
    std::vector<LogSegment> segments;
    uint64_t records = 0, bytes = 0, torn_bytes = 0;
  };

  static Result<PushLogReader> Open(Options options);
  ~PushLogReader();
  PushLogReader(PushLogReader&&) noexcept;
  PushLogReader& operator=(PushLogReader&&) = delete;

  // The next record; nothing at the end. After an error it is of no use.
  Result<std::optional<Record>> Next();
  // "<file>, byte 4711": where the last record began.
  std::string Where() const;
  // REQUIRES: Next gave nothing. Cuts off what was torn.
  Result<End> Finish();
  // Of all segments, for progress.
  uint64_t bytes_total() const { return bytes_total_; }
  uint64_t bytes_read() const { return end_.bytes + offset_; }

 private:
  explicit PushLogReader(Options options) : options_(std::move(options)) {}
  Status OpenSegment(uint64_t segment);
  Result<std::optional<Record>> ReadRecord();
  // Either the torn end (nothing), or DataLoss.
  Result<std::optional<Record>> Bad(bool cut_short, std::string_view what);
  void CloseSegment();
  Status ReadAt(uint64_t offset, std::span<std::byte> to);
  Status Damage(std::string_view what) const;

  const Options options_;
  std::vector<uint64_t> segments_;  // Ascending.
  size_t at_ = 0;                   // Of segments_: the one that is open.
  int fd_ = -1;
  uint64_t size_ = 0;    // Of the open segment.
  uint64_t offset_ = 0;  // Behind the last good record.
  uint64_t began_ = 0;   // Of the last record.
  Step end_step_ = 0;
  std::optional<uint64_t> number_;  // Of the next record.
  uint64_t bytes_total_ = 0;
  bool ended_ = false;
  End end_;
};

// Removes the segments of an executor that come before `first`.
void RemoveSegments(const std::string& dir, uint32_t executor, uint64_t first);
void RemoveAllSegments(const std::string& dir);

}  // namespace dt::server
