// The timeline of the steps that observe.trace names, and its two files
// <run_dir>/trace/worker-<id>.json and .txt. Owned by the thread that trains.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/config/job_config.h"
#include "common/metrics/timeline_summary.h"

namespace dt::worker {

class StepTrace {
 public:
  // To be made before any worker of the job trains: if steps are wanted, it removes files of an
  // earlier run.
  // `activities` are told what the threads do, in any step.
  StepTrace(const JobConfig& job, ProcessId self, Activities& activities, const Clock& clock);

  Timeline* timeline() { return &timeline_; }
  // Called when steps below `end` are done. Writes the files some steps after the last wanted one,
  // when none of its work is under way any more.
  void StepsDone(Step end);
  // Writes what is recorded, unless it was written before. To be called at the end of the job,
  // while the texts of all spans still exist. A file that cannot be written causes a warning, and
  // ends no job.
  void Finish();

 private:
  Status Write(std::span<const RecordedSpan> spans, const TimelineSummary& summary) const;

  const std::string name_, folder_, file_;  // The files' path without the ending.
  const uint32_t pid_;                      // The number of the process in the trace.
  Timeline timeline_;
  bool written_;  // Or no steps are wanted.
};

}  // namespace dt::worker
