// The services that a job uses: a planner, checkpoint folders, and a disk for the generation.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/control/messages.h"
#include "common/plan/plan_codec.h"
#include "scheduler/checkpoint/manifest.h"
#include "scheduler/checkpoint/taken_from.h"
#include "scheduler/membership/membership.h"
#include "scheduler/state/job_options.h"

namespace dt::scheduler {

// The planner's input, in addition to the job file.
struct PlanInput {
  std::vector<ColumnSpec> columns;  // The columns of the data.
  uint32_t slices = 1;
  uint32_t servers = 1, workers = 1;       // The processes of the job.
  std::vector<DeviceInfo> accelerators;    // The workers' accelerators, in rank order.
  MachineMembers machine;                  // The members on the machine that has the most of them.
  std::optional<std::string> begins_from;  // JobRecord::begins_from, if the job begins now.
};

struct MadePlan {
  Plan plan;                                          // The plan of position 0.
  std::vector<PlanBytes> plans = {{Encode(Plan())}};  // By position.
  std::string model = "{}";                           // ModelJson, for checkpoints.
  std::string explanation = "{}";                     // ExplainJson, for the plan's page.
  // Decisions that the job file does not show, for example why `gpu` does not mean a card, or which
  // tables are on workers. Each is the kind of its event and the reason.
  std::vector<std::pair<std::string, std::string>> notes;
  double step_seconds = 0;  // The predicted time of a step.
  Taken taken;              // With PlanInput::begins_from.
};

// Planning has ended, with a plan or with an error.
struct PlanMade {
  Result<MadePlan> plan;
};

// Called on the job's thread. Every call returns soon.
class JobEnvironment {
 public:
  virtual ~JobEnvironment() = default;
  // Starts planning and returns at once; the result comes as PlanMade in a later call of Job::On.
  // Leases, stop requests and the status page keep working however long the search takes.
  virtual void StartPlanning(const PlanInput& input) = 0;
  // The next three are those of CheckpointStore, except that BeginCheckpoint returns the folder's
  // name relative to checkpoint.dir.
  virtual Result<std::string> BeginCheckpoint(Step step) = 0;
  virtual Result<std::string> CommitCheckpoint(const Manifest& manifest, bool best) = 0;
  virtual Result<std::string> FindCheckpoint(Step step) = 0;
  // The newest sound checkpoint of the run: `last`, or one before it, but none of `damaged`; empty
  // if `last` is. Warns of each that is passed over. Errors: DataLoss, if there is none.
  virtual Result<std::optional<JobOptions::Checkpoint>> CheckpointToReturnTo(
      const std::string& last, const std::set<std::string>& damaged) = 0;
  // On return the generation is on disk.
  virtual Status KeepGeneration(Generation generation) = 0;
};

}  // namespace dt::scheduler
