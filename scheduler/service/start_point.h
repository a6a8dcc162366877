// Where a scheduler starts: the checkpoint that its run loads, if any, and the checkpoints that are
// there.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "scheduler/checkpoint/checkpoint_store.h"
#include "scheduler/state/job_options.h"
#include "scheduler/state/job_record.h"

namespace dt::scheduler {

struct StartPoint {
  std::optional<JobOptions::Checkpoint> checkpoint;
  CheckpointStore::Options checkpoints;
};

// A complete checkpoint with this job's model.
Result<JobOptions::Checkpoint> CheckpointToEvaluate(const JobConfig& job,
                                                    const std::string& folder);

// Of a new run: it starts from a complete checkpoint of this job, if `resume` says so ("never";
// "auto": the newest one, if there is one; or its folder), or else from what the job begins with
// (InitConfig), if anything. Errors: Invalid (of another job), DataLoss (damaged), NotFound.
Result<StartPoint> StartOfRun(const JobConfig& job, const std::string& resume);
// Of a job that returns to `from`, or to its beginning, which is that of JobRecord::begins_from.
Result<StartPoint> StartAgain(const JobConfig& job, std::optional<JobOptions::Checkpoint> from,
                              const std::optional<std::string>& begins_from);
// See JobEnvironment::CheckpointToReturnTo.
Result<std::optional<JobOptions::Checkpoint>> CheckpointToReturnTo(
    const JobConfig& job, const std::string& last, const std::set<std::string>& damaged);
// Of a scheduler that goes on with the run in `record`. The checkpoint that the run started from
// may be gone once it is loaded, so it is not read then.
Result<StartPoint> StartWithin(const JobConfig& job, const JobRecord& record);

}  // namespace dt::scheduler
