#include "scheduler/service/disk_environment.h"

#include <filesystem>

#include "common/base/check.h"
#include "common/base/thread_name.h"
#include "scheduler/service/start_point.h"

namespace dt::scheduler {

Result<std::unique_ptr<DiskEnvironment>> DiskEnvironment::Open(Options options) {
  auto made = std::make_unique<DiskEnvironment>(Key(), std::move(options));
  const std::optional<CheckpointStore::Options>& checkpoints = made->options_.checkpoints;
  if (checkpoints.has_value()) {
    DT_TRY(made->checkpoints_, CheckpointStore::Open(*checkpoints));
  }
  return made;
}

void DiskEnvironment::StartPlanning(const PlanInput& input) {
  DT_CHECK(!planning_.joinable());
  planning_ = std::jthread([this, input] {
    NameThread("planner");
    options_.on_plan({options_.planner(input)});
  });
}

Result<std::string> DiskEnvironment::BeginCheckpoint(Step step) {
  DT_CHECK(checkpoints_.has_value());
  DT_TRY(const std::string folder, checkpoints_->Begin(step));
  return std::filesystem::path(folder).filename().string();
}

Result<std::string> DiskEnvironment::CommitCheckpoint(const Manifest& manifest, bool best) {
  DT_CHECK(checkpoints_.has_value());
  return checkpoints_->Commit(manifest, best);
}

Result<std::string> DiskEnvironment::FindCheckpoint(Step step) {
  DT_CHECK(checkpoints_.has_value());
  return checkpoints_->Find(step);
}

Result<std::optional<JobOptions::Checkpoint>> DiskEnvironment::CheckpointToReturnTo(
    const std::string& last, const std::set<std::string>& damaged) {
  return scheduler::CheckpointToReturnTo(*options_.job, last, damaged);
}

Status DiskEnvironment::KeepGeneration(Generation generation) {
  return options_.runs == nullptr ? OkStatus() : options_.runs->KeepGeneration(generation);
}

}  // namespace dt::scheduler
