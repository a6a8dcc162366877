// The timeline of the steps that observe.trace names, and its two files
// <run_dir>/trace/worker-<id>.json and .txt. Owned by the thread that trains.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/config/job_config.h"
#include "common/metrics/timeline_summary.h"

namespace dt::worker {

class StepTrace {
 public:
  // Before any worker of the job trains: if steps are wanted, files of an earlier run go.
  StepTrace(const JobConfig& job, ProcessId self);

  // To record into; null: nothing is wanted.
  Timeline* timeline() { return timeline_ ? &*timeline_ : nullptr; }
  // Steps below `end` are done. Writes the files some steps after the last that is wanted, when
  // nothing of it is under way any more.
  void StepsDone(Step end);
  // Writes what there is, unless it is written. At the end of the job, while the texts of all spans
  // are still there. Files that cannot be written are a warning, and end no job.
  void Finish();

 private:
  Status Write(std::span<const RecordedSpan> spans, const TimelineSummary& summary) const;

  const std::string name_, folder_, file_;  // The files' path without the ending.
  const uint32_t pid_;                      // In the picture.
  std::optional<Timeline> timeline_;
  bool written_ = false;
};

}  // namespace dt::worker
