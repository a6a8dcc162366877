// The records of one executor's shards, on disk: append-only segments in the server's directory. A
// push is acknowledged only when the Commit after its record has returned OK, so that it outlives
// the process (with `sync`, a power failure too).
//
//   Append, Append, …  ──one turn of the executor──▶  Commit: one write for all  ──▶  answers
//
// A segment begins at every checkpoint; Cut says which segments a completed checkpoint makes
// useless. Owned by one thread.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "server/log/record_log_format.h"
#include "server/shard/record_codec.h"

namespace dt::server {

// A segment whose records have all been read or written.
struct LogSegment {
  uint64_t number = 0;
  uint64_t bytes = 0;
};

class RecordLog {
  struct Key {};

 public:
  struct Options {
    std::string dir;
    uint32_t executor = 0;
    bool sync = false;
    uint64_t segment_bytes_max = uint64_t{256} << 20;  // A longer segment is followed by a new one.
  };
  // Begins segment `segment`; `older` are the earlier segments that still count, in order.
  static Result<std::unique_ptr<RecordLog>> Open(Options options, Generation generation,
                                                 uint64_t segment, uint64_t first_record = 1,
                                                 std::vector<LogSegment> older = {});
  RecordLog(Key, Options options) : options_(std::move(options)) {}  // See Open.
  ~RecordLog();
  RecordLog(const RecordLog&) = delete;
  RecordLog& operator=(const RecordLog&) = delete;

  // Keeps the record's memory until a Commit succeeds. REQUIRES: nobody else can write to that
  // memory (Frame::Settled); otherwise the digest might not match the bytes written.
  void Append(RecordBytes record);
  // Writes everything appended. After an error all records are still pending, in order, and none is
  // half written: try again. Errors: Unavailable naming the file, how much was to be written and
  // how much room there is.
  Status Commit();
  // True if records are appended and not yet written.
  bool behind() const { return !pending_.empty(); }
  // True after the disk failed in a way that trying again cannot mend.
  bool broken() const { return broken_; }

  // Called at the cut of a checkpoint: later records go into a new segment. Segments from
  // `keep_from` on are needed beside the checkpoint. After an error the present one stays in use,
  // and Cut keeps it.
  Status BeginSegmentAtCut(Step step, uint64_t keep_from = ~uint64_t{0});
  // Begins a new generation: what was logged before no longer counts, and the caller removes its
  // segments.
  Status Restart(Generation generation);
  // The checkpoint of `step` is complete: forgets the segments before its cut. Returns the number
  // of the first segment kept; the caller removes the files before it.
  uint64_t Cut(Step step);

  uint64_t segment() const { return segment_; }  // The one in use.
  uint64_t first_segment() const { return older_.empty() ? segment_ : older_.front().number; }
  uint64_t bytes() const { return older_bytes_ + good_; }

 private:
  struct Pending {
    record_log::RecordHead head;
    RecordBytes record;
    uint64_t end_mark = 0;
  };
  struct CutMark {
    Step step = 0;
    uint64_t first_segment = 0;
  };
  Status OpenSegment(uint64_t segment);
  Status BeginSegment();
  Status WritePending();
  Status WriteError(int error, uint64_t bytes);
  std::string path() const;

  const Options options_;
  Generation generation_;
  int fd_ = -1;
  uint64_t segment_ = 0;
  uint64_t good_ = 0;         // The end of the records that are written completely.
  uint64_t next_record_ = 1;  // The number of the next record to append.
  uint64_t written_ = 0;      // The number of the last record written; those pending follow it.
  std::deque<Pending> pending_;
  std::vector<LogSegment> older_;
  std::vector<CutMark> cuts_;  // Cuts of checkpoints that may still complete.
  uint64_t older_bytes_ = 0;
  bool broken_ = false;
};

}  // namespace dt::server
