#include "scheduler/service/disk_environment.h"

#include <filesystem>

#include "common/base/check.h"
#include "common/base/text.h"

namespace dt::scheduler {

Result<std::unique_ptr<DiskEnvironment>> DiskEnvironment::Open(Options options) {
  auto made = std::make_unique<DiskEnvironment>(Key(), std::move(options));
  if (made->options_.evaluates_only) return made;
  DT_TRY_STATUS(made->OpenState());
  const JobConfig& job = made->options_.job;
  DT_TRY(made->checkpoints_, CheckpointStore::Open({job.checkpoint.dir, job.checkpoint.keep,
                                                    made->options_.resumed, made->options_.best}));
  return made;
}

Status DiskEnvironment::OpenState() {
  DT_TRY(state_, OpenRocksStateStore(options_.job.run_dir + "/state"));
  DT_TRY(const uint64_t term, ReadNumber(*state_, "term", 0));
  DT_TRY(const uint64_t generation, ReadNumber(*state_, "generation", 0));
  term_ = Term(term + 1);
  generation_ = Generation(generation + 1);
  return state_->Put({{"term", std::to_string(term_.value())},
                      {"generation", std::to_string(generation_.value())}});
}

void DiskEnvironment::StartPlanning(const PlanInput& input) {
  DT_CHECK(!planning_.joinable());
  planning_ = std::jthread([this, input] { options_.on_plan({options_.planner(input)}); });
}

Result<std::string> DiskEnvironment::BeginCheckpoint(Step step) {
  DT_CHECK(checkpoints_.has_value());
  DT_TRY(const std::string folder, checkpoints_->Begin(step));
  return std::filesystem::path(folder).filename().string();
}

Result<std::string> DiskEnvironment::CommitCheckpoint(const Manifest& manifest, bool best) {
  DT_CHECK(checkpoints_.has_value());
  DT_TRY(std::string folder, checkpoints_->Commit(manifest, best));
  DT_TRY_STATUS(state_->Put({{"checkpoints", JoinText(checkpoints_->complete(), "\n")}}));
  return folder;
}

Result<std::string> DiskEnvironment::FindCheckpoint(Step step) {
  DT_CHECK(checkpoints_.has_value());
  return checkpoints_->Find(step);
}

Status DiskEnvironment::KeepGeneration(Generation generation) {
  if (state_ == nullptr) return OkStatus();
  return state_->Put({{"generation", std::to_string(generation.value())}});
}

}  // namespace dt::scheduler
