#include "scheduler/service/start_point.h"

#include <filesystem>
#include <ranges>

#include "common/base/log.h"

namespace dt::scheduler {
namespace {

JobOptions::Checkpoint Named(const std::string& folder, Manifest manifest) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(folder, error);
  return {error ? folder : real.string(), std::move(manifest)};
}

Result<JobOptions::Checkpoint> Resumed(const JobConfig& job, const std::string& folder) {
  DT_TRY(Manifest manifest, ReadManifest(folder));
  DT_TRY_STATUS(CheckSameJob(manifest, job, folder));
  return Named(folder, std::move(manifest));
}

}  // namespace

Result<std::optional<JobOptions::Checkpoint>> CheckpointToResume(const JobConfig& job,
                                                                 const std::string& resume) {
  std::optional<JobOptions::Checkpoint> none;
  if (resume == "never") return none;
  std::string folder = resume;
  if (resume == "auto") {
    DT_TRY(std::optional<std::string> newest, NewestCheckpoint(job.checkpoint.dir));
    if (!newest.has_value()) {
      LogInfo("job.nothing_to_resume", {{"dir", job.checkpoint.dir}});
      return none;
    }
    folder = *std::move(newest);
  } else {
    DT_TRY_STATUS(VerifyButRows(folder));
  }
  DT_TRY(JobOptions::Checkpoint found, Resumed(job, folder));
  return std::optional(std::move(found));
}

Result<JobOptions::Checkpoint> CheckpointToEvaluate(const JobConfig& job,
                                                    const std::string& folder) {
  DT_TRY_STATUS(VerifyButRows(folder));
  DT_TRY(Manifest manifest, ReadManifest(folder));
  DT_TRY_STATUS(CheckSameModel(manifest, job, folder));
  return Named(folder, std::move(manifest));
}

Result<StartPoint> StartOfRun(const JobConfig& job, std::optional<JobOptions::Checkpoint> from) {
  StartPoint start{.checkpoint = std::move(from),
                   .checkpoints = {.dir = job.checkpoint.dir, .keep = job.checkpoint.keep}};
  if (!start.checkpoint.has_value()) return start;
  const auto& [folder, manifest] = *start.checkpoint;
  start.checkpoints.resumed = manifest.schedule.step;
  DT_TRY(start.checkpoints.best, BestOfResumed(folder, manifest));
  return start;
}

namespace {

// A checkpoint from which a run can start.
Result<JobOptions::Checkpoint> Sound(const JobConfig& job, const std::string& folder) {
  DT_TRY_STATUS(VerifyButRows(folder));
  DT_TRY(JobOptions::Checkpoint found, Resumed(job, folder));
  DT_TRY_STATUS(BestOfResumed(folder, found.manifest).status());
  return found;
}

}  // namespace

Result<std::optional<JobOptions::Checkpoint>> CheckpointToReturnTo(
    const JobConfig& job, const std::string& last, const std::set<std::string>& damaged) {
  if (last.empty()) return std::optional<JobOptions::Checkpoint>();
  // Only those before `last` are of this run, or of the one that it went on from.
  std::vector<CheckpointInfo> all =
      ListCheckpoints(std::filesystem::path(last).parent_path().string());
  const std::string name = std::filesystem::path(last).filename().string();
  std::erase_if(all, [&](const CheckpointInfo& info) {
    return std::filesystem::path(info.folder).filename().string() > name;
  });
  Status why = DataLoss("{} is gone", last);
  for (const CheckpointInfo& info : std::views::reverse(all)) {
    if (!info.complete()) continue;
    Result<JobOptions::Checkpoint> found = Sound(job, info.folder);
    if (found.ok() && damaged.contains(found->folder)) {
      found = DataLoss("{} is damaged", info.folder);
    }
    if (found.ok()) return std::optional(*std::move(found));
    LogWarn("job.checkpoint_passed_over",
            {{"folder", info.folder}, {"why", ToText(found.status())}});
    why = found.status();
  }
  return why;
}

Result<StartPoint> StartWithin(const JobConfig& job, const JobRecord& record) {
  StartPoint start{.checkpoint = {},
                   .checkpoints = {.dir = job.checkpoint.dir, .keep = job.checkpoint.keep}};
  start.checkpoints.continues = true;
  const bool loaded = record.training.has_value() && record.training->loaded;
  if (!record.resumed_from.empty() && !loaded) {
    DT_TRY(start.checkpoint, Resumed(job, record.resumed_from));
  }
  const std::string& last =
      record.last_checkpoint.empty() ? record.resumed_from : record.last_checkpoint;
  if (!last.empty()) {
    DT_TRY(const Manifest manifest, ReadManifest(last));
    start.checkpoints.resumed = manifest.schedule.step;
  }
  return start;
}

}  // namespace dt::scheduler
