#include "scheduler/service/surroundings.h"

#include <filesystem>

#include "common/base/check.h"
#include "common/base/text.h"

namespace dt::scheduler {

Result<std::unique_ptr<DiskSurroundings>> DiskSurroundings::Open(Options options) {
  auto made = std::make_unique<DiskSurroundings>(Key(), std::move(options));
  if (made->options_.evaluates_only) return made;
  DT_TRY_STATUS(made->OpenState());
  const JobConfig& job = made->options_.job;
  DT_TRY(made->checkpoints_, CheckpointStore::Open({job.checkpoint.dir, job.checkpoint.keep,
                                                    made->options_.resumed, made->options_.best}));
  return made;
}

Status DiskSurroundings::OpenState() {
  DT_TRY(state_, OpenRocksStateStore(options_.job.run_dir + "/state"));
  DT_TRY(const uint64_t term, ReadNumber(*state_, "term", 0));
  DT_TRY(const uint64_t generation, ReadNumber(*state_, "generation", 0));
  term_ = Term(term + 1);
  generation_ = Generation(generation + 1);
  return state_->Put({{"term", std::to_string(term_.value())},
                      {"generation", std::to_string(generation_.value())}});
}

Result<MadePlan> DiskSurroundings::MakePlan(const PlanInput& input) {
  return options_.planner(input);
}

Result<std::string> DiskSurroundings::BeginCheckpoint(Step step) {
  DT_CHECK(checkpoints_.has_value());
  DT_TRY(const std::string folder, checkpoints_->Begin(step));
  return std::filesystem::path(folder).filename().string();
}

Result<std::string> DiskSurroundings::CommitCheckpoint(const Manifest& manifest, bool best) {
  DT_CHECK(checkpoints_.has_value());
  DT_TRY(std::string folder, checkpoints_->Commit(manifest, best));
  DT_TRY_STATUS(state_->Put({{"checkpoints", JoinText(checkpoints_->complete(), "\n")}}));
  return folder;
}

Result<std::string> DiskSurroundings::FindCheckpoint(Step step) {
  DT_CHECK(checkpoints_.has_value());
  return checkpoints_->Find(step);
}

Status DiskSurroundings::KeepGeneration(Generation generation) {
  if (state_ == nullptr) return OkStatus();
  return state_->Put({{"generation", std::to_string(generation.value())}});
}

}  // namespace dt::scheduler
