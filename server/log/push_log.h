// What one executor of a server was pushed, on disk: append-only segments in the server's
// directory. A push is acknowledged only when the Commit after its Append has returned OK, so that
// it outlives the process (with `sync`, a power failure too).
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
#include "common/net/frame.h"

namespace dt::server {

// A segment whose records have all been read or written.
struct LogSegment {
  uint64_t number = 0;
  Step end_step = 0;  // Every record in it is of an earlier step.
  uint64_t bytes = 0;
};

class PushLog {
  struct Key {};

 public:
  struct Options {
    std::string dir;
    uint32_t executor = 0;
    bool sync = false;
    uint64_t segment_bytes_max = uint64_t{256} << 20;  // A longer segment is followed by a new one.
  };
  // Begins segment `segment`; `older` are the earlier segments that still count, in order.
  static Result<std::unique_ptr<PushLog>> Open(Options options, Generation generation,
                                               uint64_t segment, uint64_t first_record = 1,
                                               std::vector<LogSegment> older = {});
  PushLog(Key, Options options) : options_(std::move(options)) {}  // See Open.
  ~PushLog();
  PushLog(const PushLog&) = delete;
  PushLog& operator=(const PushLog&) = delete;

  // Keeps the frames, sharing their memory, until a Commit succeeds. REQUIRES: no other process can
  // write to that memory (Frame::Settled); otherwise the digest might not match the bytes written.
  void Append(Step step, const Frames& frames);
  // Writes everything appended. After an error all records are still pending, in order, and none is
  // half written: try again. Errors: Unavailable naming the file, how much was to be written and
  // how much room there is.
  Status Commit();
  // True if records are appended and not yet written.
  bool behind() const { return !pending_.empty(); }
  // True after the disk failed in a way that trying again cannot mend.
  bool broken() const { return broken_; }

  // Later records go into a new segment. After an error the present one stays in use.
  Status BeginSegment();
  // Begins a new generation: what was logged before no longer counts, and the caller removes its
  // segments.
  Status Restart(Generation generation);
  // Forgets the segments, oldest first, that hold only steps before `step`, because a checkpoint
  // holds these steps. Returns the number of the first segment kept; the caller removes the files
  // before it.
  uint64_t Cut(Step step);

  uint64_t first_segment() const { return older_.empty() ? segment_ : older_.front().number; }
  uint64_t bytes() const { return older_bytes_ + good_; }

 private:
  struct Pending {
    Step step = 0;
    std::string head;  // RecordHead and FrameHeads.
    Frames frames;
    uint64_t end_mark = 0;
    uint64_t bytes = 0;
  };
  Status OpenSegment(uint64_t segment);
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
  Step end_step_ = 0;         // Every record in this segment is of an earlier step.
  std::deque<Pending> pending_;
  std::vector<LogSegment> older_;
  uint64_t older_bytes_ = 0;
  bool broken_ = false;
};

}  // namespace dt::server
