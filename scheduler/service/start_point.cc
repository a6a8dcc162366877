#include "scheduler/service/start_point.h"

#include <algorithm>
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

// `resume` is "never"; "auto": the newest checkpoint of the job, if there is one; or its folder.
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

bool HasFile(const JobConfig& job) {
  const auto has = [](const TableConfig& table) { return !table.init_file.empty(); };
  return !job.init.arrays.empty() || std::ranges::any_of(job.model.tables, has);
}

// The folder that init.from means.
Result<std::string> FolderToBeginWith(const std::string& from) {
  namespace fs = std::filesystem;
  const bool is_path = from.find('/') != std::string::npos;
  if (is_path && fs::exists(from + "/manifest.json")) return from;
  const std::string dir = is_path ? from : fmt::format("runs/{}/checkpoints", from);
  DT_TRY(const std::optional<std::string> newest, NewestCheckpoint(dir));
  if (newest.has_value()) return *newest;
  if (is_path) return NotFound("init.from: {} is no checkpoint, and has none", from);
  return WithHint(NotFound("init.from: job {} has no complete checkpoint in {}", from, dir),
                  "a folder is written with a slash, such as ./old");
}

// The beginning that was found once: the folder, or "" if there are only files.
Result<std::optional<JobOptions::Checkpoint>> BeginningIn(
    const std::optional<std::string>& begins_from) {
  if (!begins_from.has_value()) return std::optional<JobOptions::Checkpoint>();
  JobOptions::Checkpoint beginning{.folder = *begins_from, .manifest = {}, .begins = true};
  if (!begins_from->empty()) {
    DT_TRY_STATUS(VerifyButRows(*begins_from));
    DT_TRY(beginning.manifest, ReadManifest(*begins_from));
  }
  return std::optional(std::move(beginning));
}

Result<std::optional<JobOptions::Checkpoint>> CheckpointToStartFrom(const JobConfig& job,
                                                                    const std::string& resume) {
  DT_TRY(std::optional<JobOptions::Checkpoint> own, CheckpointToResume(job, resume));
  if (own.has_value()) return own;
  if (job.init.from.empty()) {
    return BeginningIn(HasFile(job) ? std::optional<std::string>("") : std::nullopt);
  }
  DT_TRY(const std::string folder, FolderToBeginWith(job.init.from));
  return BeginningIn(Named(folder, {}).folder);
}

Result<StartPoint> StartFrom(const JobConfig& job, std::optional<JobOptions::Checkpoint> from) {
  StartPoint start{.checkpoint = std::move(from),
                   .checkpoints = {.dir = job.checkpoint.dir, .keep = job.checkpoint.keep}};
  if (!start.checkpoint.has_value() || start.checkpoint->begins) return start;
  const auto& [folder, manifest, begins] = *start.checkpoint;
  start.checkpoints.resumed = manifest.schedule.step;
  DT_TRY(start.checkpoints.best, BestOfResumed(folder, manifest));
  return start;
}

}  // namespace

Result<JobOptions::Checkpoint> CheckpointToEvaluate(const JobConfig& job,
                                                    const std::string& folder) {
  DT_TRY_STATUS(VerifyButRows(folder));
  DT_TRY(Manifest manifest, ReadManifest(folder));
  DT_TRY_STATUS(CheckSameModel(manifest, job, folder));
  return Named(folder, std::move(manifest));
}

Result<StartPoint> StartOfRun(const JobConfig& job, const std::string& resume) {
  DT_TRY(std::optional<JobOptions::Checkpoint> from, CheckpointToStartFrom(job, resume));
  return StartFrom(job, std::move(from));
}

Result<StartPoint> StartAgain(const JobConfig& job, std::optional<JobOptions::Checkpoint> from,
                              const std::optional<std::string>& begins_from) {
  if (!from.has_value()) {
    DT_TRY(from, BeginningIn(begins_from));
  }
  return StartFrom(job, std::move(from));
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
  } else if (!loaded) {
    DT_TRY(start.checkpoint, BeginningIn(record.begins_from));
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
