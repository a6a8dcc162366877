// A scheduler process: the real Job, SessionRouter and checkpoint folders.
#pragma once

#include <memory>
#include <optional>

#include "scheduler/checkpoint/checkpoint_store.h"
#include "scheduler/job/job.h"
#include "scheduler/service/session_router.h"
#include "test/sim/cluster/process.h"

namespace dt::sim {

class SimScheduler : public Process, private scheduler::JobEnvironment {
 public:
  struct Options {
    const JobConfig& job;
    const scheduler::MadePlan& plan;  // What planning comes to.
    Term term;
    Generation& generation;  // On the disk: the latest one.
    bool resume = false;     // From the newest complete checkpoint, if there is one.
  };
  SimScheduler(World& world, Wires& wires, Node node, Options options);

  // A clean stop at the next step boundary.
  void RequestStop();

  const scheduler::Job& job() const { return *job_; }

 private:
  void OnKill() override { wires().Forget(kSchedulerAddress); }
  Status Open();
  void OnMessage(const Frames& message);
  void Tick();
  void SendAll();

  void StartPlanning(const scheduler::PlanInput& input) override;
  Result<std::string> BeginCheckpoint(Step step) override;
  Result<std::string> CommitCheckpoint(const scheduler::Manifest& manifest, bool best) override;
  Result<std::string> FindCheckpoint(Step step) override { return checkpoints_->Find(step); }
  Status KeepGeneration(Generation generation) override;

  const Options options_;
  scheduler::SessionRouter router_;
  std::optional<scheduler::CheckpointStore> checkpoints_;
  std::optional<scheduler::Job> job_;
  std::optional<TimePoint> ended_;
};

}  // namespace dt::sim
