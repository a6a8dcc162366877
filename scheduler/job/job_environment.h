// What a job needs of the world: a planner, checkpoint folders, a disk that remembers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/plan/plan.h"
#include "scheduler/checkpoint/manifest.h"
#include "scheduler/membership/membership.h"

namespace dt::scheduler {

// What a plan is made from, besides the job.
struct PlanInput {
  std::vector<ColumnSpec> columns;  // The columns of the data.
  uint32_t slices = 1;
  std::vector<DeviceInfo> accelerators;  // The workers' accelerators, in rank order.
  MachineMembers machine;                // The members on the machine that has the most.
};

struct MadePlan {
  Plan plan;
  std::string model = "{}";        // ModelJson, for checkpoints.
  std::string explanation = "{}";  // ExplainJson, for the plan's page.
  // Decisions that the job file does not show, such as why `gpu` does not mean a card, or which
  // tables went to the workers: the kind of the event that tells it, and the reason.
  std::vector<std::pair<std::string, std::string>> notes;
  double step_seconds = 0;  // The predicted time of a step.
};

// The event that planning has ended, with a plan or with the reason why there is none.
struct PlanMade {
  Result<MadePlan> plan;
};

// Called on the job's thread. Every call returns soon.
class JobEnvironment {
 public:
  virtual ~JobEnvironment() = default;
  // Begins to plan and returns at once. The result comes as PlanMade in a later call of Job::On, so
  // that however long a search takes, leases, stop requests and the status page go on.
  virtual void StartPlanning(const PlanInput& input) = 0;
  // The next three are as in CheckpointStore, but BeginCheckpoint gives the folder's name in
  // checkpoint.dir.
  virtual Result<std::string> BeginCheckpoint(Step step) = 0;
  virtual Result<std::string> CommitCheckpoint(const Manifest& manifest, bool best) = 0;
  virtual Result<std::string> FindCheckpoint(Step step) = 0;
  // The generation is on the disk when this returns.
  virtual Status KeepGeneration(Generation generation) = 0;
};

}  // namespace dt::scheduler
