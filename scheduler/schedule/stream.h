// Which messages of a stream are trained on next. Orders get consecutive messages of each
// partition; how many depends on what is there. A plain state machine.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/cluster/stream_cut.h"
#include "common/config/data_config.h"
#include "common/control/messages.h"

namespace dt::scheduler {

// The state of a stream; a part of the schedule's record.
struct StreamRecord {
  std::vector<uint64_t> next;   // By partition: the first message that no order has.
  std::vector<uint64_t> ends;   // By partition: behind the last message that is known.
  std::vector<uint64_t> limit;  // Not empty: the window that was evaluated ends here.
  DT_FIELDS(next, ends, limit)
};

// The constant part of a stream.
struct StreamLimits {
  uint32_t batch_size = 1;
  Duration wait{};       // See StreamConfig.
  bool forever = false;  // See TrainConfig.
};

class Stream {
 public:
  // REQUIRES: `record` outlives it.
  Stream(const StreamLimits& limits, StreamRecord& record) : limits_(limits), record_(record) {}

  // The partitions when the job begins or goes on. `offsets` are those of the checkpoint; empty: it
  // begins with the oldest messages, or with the next that come. How far commands go is not known.
  // Errors: Invalid, if there are fewer partitions than before; Malformed, if messages that are to
  // be trained on have been deleted.
  static Result<StreamRecord> Begin(const std::vector<PartitionRange>& partitions,
                                    const std::vector<uint64_t>& offsets,
                                    const StreamConfig& config);

  // Partitions that are newer than the job's beginning are passed over.
  void OnReport(const StreamReportMessage& report);
  // The messages of at most so many steps, which no other order gets. Nothing if there are too few
  // for a batch, unless they have waited long enough.
  std::optional<StreamCut> Take(uint64_t steps_max, TimePoint now);
  // The messages that Take would give for so many steps; they are taken before others, as a window
  // that ends with them.
  std::optional<StreamCut> Hold(uint64_t steps_max, TimePoint now);
  // Messages from here on are taken again.
  void GiveBack(const StreamCut& first) { record_.next = first.first; }
  // Whether there is no message left, and the job is not to wait for more.
  bool at_end() const { return !limits_.forever && Left() == 0; }
  // Whether the messages of a window are left that was evaluated.
  bool holds() const { return !record_.limit.empty(); }
  // The steps in which the messages of a cut are trained on.
  uint64_t StepsOf(const StreamCut& cut) const;

 private:
  const std::vector<uint64_t>& Ends() const { return holds() ? record_.limit : record_.ends; }
  uint64_t Left() const;
  std::vector<uint64_t> ShareOf(uint64_t left) const;
  std::optional<StreamCut> Next(uint64_t steps_max, TimePoint now);

  const StreamLimits limits_;
  StreamRecord& record_;
  std::optional<TimePoint> waits_since_;  // Messages that are too few for a batch.
};

}  // namespace dt::scheduler
