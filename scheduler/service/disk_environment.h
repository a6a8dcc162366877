// The JobEnvironment of a real scheduler: a planner on a thread of its own, the checkpoint folder,
// and the scheduler's state on disk.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "scheduler/checkpoint/checkpoint_store.h"
#include "scheduler/job/job_environment.h"
#include "scheduler/service/state_store.h"

namespace dt::scheduler {

using Planner = std::function<Result<MadePlan>(const PlanInput&)>;

class DiskEnvironment : public JobEnvironment {
 public:
  struct Options {
    const JobConfig& job;
    Planner planner;
    std::function<void(PlanMade)> on_plan;  // Called on the planner's thread.
    bool evaluates_only = false;            // If set, nothing is written to disk.
    std::optional<Step> resumed;            // See CheckpointStore::Options.
    std::optional<BestCheckpoint> best;
  };
  // Increments term and generation on disk, unless only evaluating.
  static Result<std::unique_ptr<DiskEnvironment>> Open(Options options);

  Term term() const { return term_; }
  Generation generation() const { return generation_; }

  // REQUIRES: called once.
  void StartPlanning(const PlanInput& input) override;
  Result<std::string> BeginCheckpoint(Step step) override;
  Result<std::string> CommitCheckpoint(const Manifest& manifest, bool best) override;
  Result<std::string> FindCheckpoint(Step step) override;
  Status KeepGeneration(Generation generation) override;

 private:
  struct Key {};

 public:
  DiskEnvironment(Key, Options options) : options_(std::move(options)) {}  // Use Open.

 private:
  Status OpenState();

  const Options options_;
  // Both empty if nothing is written.
  std::unique_ptr<StateStore> state_;
  std::optional<CheckpointStore> checkpoints_;
  Term term_ = Term(1);
  Generation generation_ = Generation(1);
  // The last member, so that the thread is joined before the others are destroyed. A search cannot
  // be interrupted, but it ends.
  std::jthread planning_;
};

}  // namespace dt::scheduler
