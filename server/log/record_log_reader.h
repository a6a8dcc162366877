// Reads a log of records back after its process ended, however it ended.
//
// An incomplete record at the end of the last segment was never acknowledged: it is cut off. A
// record there counts as incomplete if the file ends within it, or if it is wrong and the file's
// last eight bytes are zero (the file system made room, and the power failed before the data came).
// Anything else that is wrong is damage: DataLoss naming file and offset. Owned by one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/net/frame.h"
#include "server/log/record_log.h"

namespace dt::server {

class RecordLogReader {
 public:
  struct Options {
    std::string dir;
    uint32_t executor = 0;
    Generation generation;       // Segments of a later generation are ignored.
    uint64_t first_segment = 1;  // Earlier segments do not count.
    bool sync = false;           // Makes the cut survive a power failure.
  };
  struct Record {
    Frame head, keys, gradients;  // See record_codec.h.
  };
  // The end of the log, from which RecordLog::Open continues it.
  struct End {
    uint64_t next_segment = 1, next_record = 1;
    std::vector<LogSegment> segments;
    uint64_t records = 0, bytes = 0, torn_bytes = 0;
  };

  static Result<RecordLogReader> Open(Options options);
  ~RecordLogReader();
  RecordLogReader(RecordLogReader&&) noexcept;
  RecordLogReader& operator=(RecordLogReader&&) = delete;

  // The next record; nothing at the end. After an error the reader is of no use.
  Result<std::optional<Record>> Next();
  // Where the last record began, as "<file>, byte 4711".
  std::string Where() const;
  // Cuts off an incomplete record. REQUIRES: Next returned nothing.
  Result<End> Finish();
  // Bytes of all segments, for progress.
  uint64_t bytes_total() const { return bytes_total_; }
  uint64_t bytes_read() const { return end_.bytes + offset_; }

 private:
  explicit RecordLogReader(Options options) : options_(std::move(options)) {}
  Status OpenSegment(uint64_t segment);
  Result<std::optional<Record>> ReadRecord();
  // Returns nothing if the record is an incomplete one at the end of the log, else DataLoss.
  Result<std::optional<Record>> Bad(bool cut_short, std::string_view what);
  void CloseSegment();
  Status ReadAt(uint64_t offset, std::span<std::byte> to);
  Status Damage(std::string_view what) const;

  const Options options_;
  std::vector<uint64_t> segments_;  // Ascending.
  size_t at_ = 0;                   // Index of the open segment in segments_.
  int fd_ = -1;
  uint64_t size_ = 0;               // Size of the open segment.
  uint64_t offset_ = 0;             // End of the last good record.
  uint64_t began_ = 0;              // Start of the last record.
  std::optional<uint64_t> number_;  // Number of the next record.
  uint64_t bytes_total_ = 0;
  bool ended_ = false;
  End end_;
};

// Removes the segments of an executor that come before `first`.
void RemoveSegments(const std::string& dir, uint32_t executor, uint64_t first);
void RemoveAllSegments(const std::string& dir);

}  // namespace dt::server
