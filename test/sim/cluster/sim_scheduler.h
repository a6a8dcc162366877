// A scheduler process: the real Job, SessionRouter and checkpoint folders.
#pragma once

#include <memory>
#include <optional>

#include "scheduler/checkpoint/checkpoint_store.h"
#include "scheduler/job/job.h"
#include "scheduler/service/session_router.h"
#include "scheduler/service/start_point.h"
#include "test/sim/cluster/process.h"

namespace dt::sim {

class SimScheduler : public Process, private scheduler::JobEnvironment {
 public:
  // What schedulers of a job leave on their disk.
  struct Disk {
    Generation generation;          // The latest one.
    scheduler::RecordParts record;  // Of the run, as the last scheduler wrote it; empty: not yet.
  };
  struct Options {
    const JobConfig& job;
    const scheduler::MadePlan& plan;  // What planning comes to.
    Term term;
    Disk& disk;
    bool resume = false;   // From the newest complete checkpoint, if there is one.
    bool returns = false;  // The job may return to a checkpoint: processes can join again.
  };
  // If the disk has a record, goes on where it ends.
  SimScheduler(World& world, Wires& wires, Node node, Options options);

  // Whether it has begun.
  bool Drain(ProcessId server);
  bool Scale(Role role, uint32_t count);
  // A clean stop at the next step boundary.
  void RequestStop();
  // Killed in the midst of the next messages that it sends; what they follow from is on its disk.
  void KillInNextSending() { dies_sending_ = true; }
  // Killed when its next checkpoint is in place, and its record does not say so yet.
  void KillInNextCommit() { dies_committing_ = true; }

  const scheduler::Job& job() const { return *job_; }
  bool killed() const { return killed_; }  // It did not end by itself.

 private:
  void OnKill() override {
    wires().Forget(kSchedulerAddress);
    killed_ = true;
  }
  Status Open();
  Status BeginRun();
  Status Continue(scheduler::JobRecord record);
  void BeginAgainIfNeeded();
  void OnMessage(const Frames& message);
  void Tick();
  void SendAll();

  void StartPlanning(const scheduler::PlanInput& input) override;
  Result<std::string> BeginCheckpoint(Step step) override;
  Result<std::string> CommitCheckpoint(const scheduler::Manifest& manifest, bool best) override;
  Result<std::string> FindCheckpoint(Step step) override { return checkpoints_->Find(step); }
  Status KeepGeneration(Generation generation) override;
  Result<std::optional<scheduler::JobOptions::Checkpoint>> CheckpointToReturnTo(
      const std::string& last, const std::set<std::string>& damaged) override {
    return scheduler::CheckpointToReturnTo(options_.job, last, damaged);
  }

  const Options options_;
  scheduler::SessionRouter router_;
  std::optional<scheduler::CheckpointStore> checkpoints_;
  std::optional<scheduler::Job> job_;
  uint64_t beginnings_ = 0;  // Times that the job has returned.
  std::optional<TimePoint> ended_;
  bool dies_sending_ = false, dies_committing_ = false, killed_ = false;
};

}  // namespace dt::sim
