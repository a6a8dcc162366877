// A JobEnvironment without disk and planner: it records requests and returns prepared answers.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "scheduler/state/job_environment.h"

namespace dt::scheduler {

class FakeEnvironment : public JobEnvironment {
 public:
  void StartPlanning(const PlanInput& input) override {
    asked = input;
    planning = true;
  }
  Result<std::string> BeginCheckpoint(Step step) override {
    if (!disk.ok()) return disk;
    return fmt::format("/writing/{}", step);
  }
  Result<std::string> CommitCheckpoint(const Manifest& manifest, bool best) override {
    if (!disk.ok()) return disk;
    committed.push_back(fmt::format("{}{}", manifest.schedule.step, best ? "*" : ""));
    last = manifest;
    return fmt::format("/done/{}", manifest.schedule.step);
  }
  Result<std::string> FindCheckpoint(Step step) override { return fmt::format("/done/{}", step); }
  Result<std::optional<JobOptions::Checkpoint>> CheckpointToReturnTo(
      const std::string&, const std::set<std::string>&) override {
    return std::optional<JobOptions::Checkpoint>();
  }
  Status KeepGeneration(Generation) override { return disk; }

  // The result of the planning in progress; nothing if there is none.
  std::optional<PlanMade> TakePlan() {
    if (!std::exchange(planning, false)) return std::nullopt;
    return PlanMade{plan};
  }

  Result<MadePlan> plan = MadePlan();
  Status disk;
  PlanInput asked;
  bool planning = false;
  std::vector<std::string> committed;  // Committed steps: "7", or "7*" if it was the best.
  Manifest last;
};

}  // namespace dt::scheduler
