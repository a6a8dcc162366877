// The JobEnvironment of a real scheduler: a planner on a thread of its own, the checkpoint folder,
// and the generation on disk.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "scheduler/checkpoint/checkpoint_store.h"
#include "scheduler/service/run_store.h"
#include "scheduler/state/job_environment.h"

namespace dt::scheduler {

using Planner = std::function<Result<MadePlan>(const PlanInput&)>;

class DiskEnvironment : public JobEnvironment {
 public:
  struct Options {
    Planner planner;
    std::function<void(PlanMade)> on_plan;  // Called on the planner's thread.
    // Both empty for a job that writes nothing, because it only evaluates.
    RunStore* runs = nullptr;  // Outlives the environment.
    std::optional<CheckpointStore::Options> checkpoints;
    const JobConfig* job = nullptr;  // Outlives the environment.
  };
  static Result<std::unique_ptr<DiskEnvironment>> Open(Options options);

  // REQUIRES: called once.
  void StartPlanning(const PlanInput& input) override;
  Result<std::string> BeginCheckpoint(Step step) override;
  Result<std::string> CommitCheckpoint(const Manifest& manifest, bool best) override;
  Result<std::string> FindCheckpoint(Step step) override;
  Status KeepGeneration(Generation generation) override;
  Result<std::optional<JobOptions::Checkpoint>> CheckpointToReturnTo(
      const std::string& last, const std::set<std::string>& damaged) override;

 private:
  struct Key {};

 public:
  DiskEnvironment(Key, Options options) : options_(std::move(options)) {}  // Use Open.

 private:
  const Options options_;
  std::optional<CheckpointStore> checkpoints_;
  // The last member, so that the thread is joined before the others are destroyed. A search cannot
  // be interrupted, but it ends.
  std::jthread planning_;
};

}  // namespace dt::scheduler
