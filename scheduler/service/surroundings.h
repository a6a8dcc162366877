// The real JobSurroundings: planner, checkpoint folder and the scheduler's own state on the disk.
#pragma once

#include <functional>
#include <memory>

#include "scheduler/checkpoint/checkpoint_store.h"
#include "scheduler/service/job_state.h"
#include "scheduler/service/state_store.h"

namespace dt::scheduler {

using Planner = std::function<Result<MadePlan>(const PlanInput&)>;

class DiskSurroundings : public JobSurroundings {
 public:
  struct Options {
    const JobConfig& job;
    Planner planner;
    bool evaluates_only = false;  // Writes nothing.
    std::optional<Step> resumed;  // See CheckpointStore.
    std::optional<BestCheckpoint> best;
  };
  // Raises term and generation.
  static Result<std::unique_ptr<DiskSurroundings>> Open(Options options);

  Term term() const { return term_; }
  Generation generation() const { return generation_; }

  Result<MadePlan> MakePlan(const PlanInput& input) override;
  Result<std::string> BeginCheckpoint(Step step) override;
  Result<std::string> CommitCheckpoint(const Manifest& manifest, bool best) override;
  Result<std::string> FindCheckpoint(Step step) override;
  Status KeepGeneration(Generation generation) override;

 private:
  struct Key {};

 public:
  DiskSurroundings(Key, Options options) : options_(std::move(options)) {}  // See Open.

 private:
  Status OpenState();

  const Options options_;
  std::unique_ptr<StateStore> state_;           // Null if nothing is written.
  std::optional<CheckpointStore> checkpoints_;  // Likewise.
  Term term_ = Term(1);
  Generation generation_ = Generation(1);
};

}  // namespace dt::scheduler
