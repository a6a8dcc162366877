// The task of a job. Every scheduler of the job gets it, the first one and its successors.
#pragma once

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/config/job_config.h"
#include "scheduler/checkpoint/manifest.h"

namespace dt::scheduler {

enum class Goal { kTrain, kEvaluate };

struct JobOptions {
  const JobConfig& job;
  Goal goal = Goal::kTrain;
  Term term;
  Generation generation;
  // The checkpoint to start from; set for Goal::kEvaluate and for a resumed job.
  struct Checkpoint {
    std::string folder;
    Manifest manifest;
    // The job begins at step 0 with parts of it, because it is another job's. The folder may be "",
    // if all that it begins with is in other files.
    bool begins = false;
  };
  std::optional<Checkpoint> checkpoint;
  uint64_t run = 0;  // A random number if a run begins; see WelcomeMessage.
  Duration age{};    // The time since the run began, under an earlier scheduler.
  // Whether the processes can join again, so that the job may return to a checkpoint.
  bool may_return = false;

  bool begins() const { return checkpoint.has_value() && checkpoint->begins; }
  // The checkpoint whose job this one is; null if there is none.
  const Checkpoint* resumed() const {
    return checkpoint.has_value() && !checkpoint->begins ? &*checkpoint : nullptr;
  }
  // Pieces of a step's batch.
  uint32_t slices() const {
    return job.train.slices > 0 ? job.train.slices : job.cluster.workers / job.team_size();
  }
};

}  // namespace dt::scheduler
