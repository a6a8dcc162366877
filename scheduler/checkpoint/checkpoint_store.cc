#include "scheduler/checkpoint/checkpoint_store.h"

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <set>

#include "common/base/folder.h"
#include "common/base/log.h"
#include "common/storage/file_digest.h"
#include "common/storage/files.h"

namespace dt::scheduler {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kWritingPrefix = ".writing-";
constexpr std::string_view kRemovingPrefix = ".removing-";
constexpr char kManifest[] = "manifest.json";
constexpr char kBest[] = "best";

std::string NameOf(std::string_view prefix, Step step) {
  return fmt::format("{}{:012}", prefix, step);
}

// Parses the step from a name such as "step-000000001000".
std::optional<Step> StepOf(const std::string& name) {
  if (!name.starts_with(kPrefix) || name.size() < kPrefix.size() + 12) return std::nullopt;
  const std::string digits = name.substr(kPrefix.size());
  if (digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return digits.size() > 19 ? std::nullopt : std::optional<Step>(std::stoull(digits));
}

std::string Absolute(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

std::string BestOf(const fs::path& dir) {
  std::error_code error;
  return fs::read_symlink(dir / kBest, error).filename().string();
}

// The checkpoint that the link `best` points to.
std::optional<BestCheckpoint> BestThere(const std::string& dir) {
  std::error_code error;
  const fs::path folder = fs::canonical(fs::path(dir) / kBest, error);
  const std::optional<Step> step = StepOf(folder.filename().string());
  if (error || !step.has_value()) return std::nullopt;
  return BestCheckpoint{*step, folder.string()};
}

// The last complete checkpoint before `folder` in the same directory.
std::optional<std::string> Before(const std::string& folder) {
  std::optional<std::string> before;
  const fs::path path = fs::path(Absolute(folder));
  const std::optional<Step> step = StepOf(path.filename().string());
  for (const CheckpointInfo& info : ListCheckpoints(path.parent_path().string())) {
    if (step.has_value() && info.step < *step && info.status.ok()) before = info.folder;
  }
  return before;
}

Status Damaged(const std::string& folder, Status status) {
  const std::optional<std::string> before = Before(folder);
  return WithHint(std::move(status), before.has_value()
                                         ? fmt::format("the checkpoint before it is {}", *before)
                                         : "there is no checkpoint before it");
}

Status CheckFile(const std::string& folder, const CheckpointFile& file) {
  const std::string path = (fs::path(folder) / file.name).string();
  std::error_code error;
  const uint64_t bytes = fs::file_size(path, error);
  if (error) return WithWhere(DataLoss("a file of the checkpoint is missing"), path);
  if (bytes != file.bytes) {
    return WithWhere(
        DataLoss("a file of the checkpoint is damaged: {} bytes instead of {}", bytes, file.bytes),
        path);
  }
  return OkStatus();
}

// Accepts only names inside the folder, since manifests are read from disk and reports come from
// peers.
Status CheckName(const std::string& name) {
  const fs::path path(name);
  const bool climbs = std::find(path.begin(), path.end(), "..") != path.end();
  if (name.empty() || path.is_absolute() || climbs || name == kManifest) {
    return Malformed("a checkpoint cannot hold a file named \"{}\"", name);
  }
  return OkStatus();
}

void Remove(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error)
    LogWarn("checkpoint.not_removed", {{"folder", path.string()}, {"why", error.message()}});
}

// Renames before removing, so that the folder is seen complete or not at all, also after a crash.
void RemoveComplete(const fs::path& folder) {
  const fs::path away =
      folder.parent_path() / (std::string(kRemovingPrefix) + folder.filename().string());
  Remove(away);
  std::error_code error;
  fs::rename(folder, away, error);
  Remove(error ? folder : away);
}

// Renames `writing` to `folder`. An existing folder is exchanged with `writing` if the file system
// can do that; otherwise it is removed first.
Status PutInPlace(const std::string& writing, const std::string& folder) {
  std::error_code error;
  if (fs::exists(folder, error)) {
    if (renameat2(AT_FDCWD, writing.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) == 0) {
      return OkStatus();
    }
    RemoveComplete(folder);
  }
  fs::rename(writing, folder, error);
  return error ? DiskError("naming", folder, error.value()) : OkStatus();
}

// Whether the folder is the complete checkpoint of the same order. A scheduler that was killed
// after it had committed is followed by one that does so again, at another time; and servers that
// came back meanwhile may have written their rows again, to files of other names.
bool IsCommitted(const std::string& folder, const Manifest& manifest) {
  const Result<Manifest> there = ReadManifest(folder);
  return there.ok() && there->order == manifest.order;
}

// Syncs the files and the directories that contain them.
Status SyncFiles(const fs::path& folder, const std::vector<CheckpointFile>& files) {
  std::set<std::string> folders = {folder.string()};
  for (const CheckpointFile& file : files) {
    const fs::path path = folder / file.name;
    DT_TRY_STATUS(SyncPath(path.string()));
    for (fs::path up = path.parent_path(); up != folder && up.has_relative_path();
         up = up.parent_path()) {
      folders.insert(up.string());
    }
  }
  for (const std::string& one : folders) DT_TRY_STATUS(SyncPath(one));
  return OkStatus();
}

}  // namespace

std::vector<CheckpointInfo> ListCheckpoints(const std::string& dir) {
  std::vector<CheckpointInfo> all;
  const std::string best = BestOf(dir);
  for (const fs::path& path : ListFolderIfAny(dir)) {
    const std::string name = path.filename().string();
    const std::optional<Step> step = StepOf(name);
    if (!step.has_value()) continue;
    CheckpointInfo& info = all.emplace_back();
    info.folder = path.string();
    info.step = *step;
    info.best = name == best;
    const Result<Manifest> manifest = ReadManifest(info.folder);
    info.status = manifest.status();
    if (!manifest.ok()) continue;
    info.written = manifest->written;
    for (const CheckpointFile& file : manifest->files) info.bytes += file.bytes;
  }
  std::sort(all.begin(), all.end(),
            [](const CheckpointInfo& a, const CheckpointInfo& b) { return a.step < b.step; });
  return all;
}

Result<Manifest> ReadManifest(const std::string& folder) {
  const std::string path = (fs::path(folder) / kManifest).string();
  Result<std::string> text = ReadWholeFile(path);
  if (text.status().code() == StatusCode::kNotFound) {
    std::error_code ignored;
    if (!fs::exists(folder, ignored)) {
      return WithHint(NotFound("there is no folder {}", folder),
                      "`dovetail checkpoint list JOB.yaml` shows the checkpoints of a job");
    }
    return WithWhere(NotFound("this is no complete checkpoint: it has no {}", kManifest), folder);
  }
  if (!text.ok()) return text.status();
  DT_TRY(Manifest manifest, ManifestFromJson(*text, path));
  for (const CheckpointFile& file : manifest.files) DT_TRY_STATUS(CheckName(file.name));
  return manifest;
}

namespace {

Status Verify(const std::string& folder, bool rows) {
  const Result<Manifest> manifest = ReadManifest(folder);
  if (!manifest.ok()) return Damaged(folder, manifest.status());
  for (const CheckpointFile& file : manifest->files) {
    Status status = CheckFile(folder, file);
    if (!status.ok()) return Damaged(folder, std::move(status));
    const std::string path = (fs::path(folder) / file.name).string();
    if (!rows && path.ends_with(".sst")) continue;
    DT_TRY(const FileDigest digest, DigestOf(path));
    if (digest.digest != file.digest) {
      return Damaged(folder, WithWhere(DataLoss("a file of the checkpoint is damaged: its digest "
                                                "differs from the manifest's"),
                                       path));
    }
  }
  return OkStatus();
}

}  // namespace

Status VerifyCheckpoint(const std::string& folder) { return Verify(folder, true); }

Status VerifyButRows(const std::string& folder) { return Verify(folder, false); }

Result<std::optional<std::string>> NewestCheckpoint(const std::string& dir) {
  const std::vector<CheckpointInfo> all = ListCheckpoints(dir);
  for (auto newest = all.rbegin(); newest != all.rend(); ++newest) {
    if (!newest->complete()) {
      LogWarn("checkpoint.skipped", {{"folder", newest->folder}, {"why", ToText(newest->status)}});
      continue;
    }
    DT_TRY_STATUS(VerifyButRows(newest->folder));
    return std::optional<std::string>(Absolute(newest->folder));
  }
  return std::optional<std::string>();
}

Result<std::optional<BestCheckpoint>> BestOfResumed(const std::string& folder,
                                                    const Manifest& manifest) {
  const std::optional<Step>& step = manifest.schedule.decisions.best_step;
  if (!step.has_value()) return std::optional<BestCheckpoint>();
  if (*step == manifest.schedule.step) return std::optional<BestCheckpoint>({*step, folder});
  const fs::path beside = fs::path(folder).parent_path() / NameOf(kPrefix, *step);
  if (!ReadManifest(beside.string()).ok()) {
    return WithHint(
        WithWhere(NotFound("the best checkpoint so far, of step {}, is not beside the one of step "
                           "{} that the job goes on from",
                           *step, manifest.schedule.step),
                  beside.string()),
        "put it back: at its end the job returns to the best one");
  }
  return std::optional<BestCheckpoint>({*step, beside.string()});
}

Result<CheckpointStore> CheckpointStore::Open(const Options& options) {
  Options absolute = options;
  absolute.dir = Absolute(options.dir);
  absolute.keep = std::max(1u, options.keep);
  if (const Status made = MakePrivateFolder(absolute.dir); !made.ok()) {
    return WithHint(Unavailable("the folder of checkpoints {} cannot be made: {}", absolute.dir,
                                MessageOf(made)),
                    "set checkpoint.dir to a folder that this user can write");
  }
  CheckpointStore store(absolute);
  for (const fs::path& path : ListFolderIfAny(absolute.dir)) {
    const std::string name = path.filename().string();
    const bool writing = name.starts_with(kWritingPrefix) && !options.continues;
    if (writing || name.starts_with(kRemovingPrefix)) Remove(path);
  }
  for (const CheckpointInfo& info : ListCheckpoints(absolute.dir)) {
    if (!info.complete()) continue;
    const bool own = options.resumed.has_value() && info.step <= *options.resumed;
    (own ? store.own_ : store.older_).push_back(info.folder);
  }
  if (options.continues) store.best_ = BestThere(absolute.dir);
  if (store.best_.has_value()) DT_TRY_STATUS(store.LinkBest());
  return store;
}

Result<std::string> CheckpointStore::Begin(Step step) {
  const fs::path folder = fs::path(options_.dir) / NameOf(kWritingPrefix, step);
  Remove(folder);
  DT_TRY_STATUS(MakePrivateFolder(folder.string()));
  return folder.string();
}

Result<std::string> CheckpointStore::Commit(const Manifest& manifest, bool best) {
  const fs::path dir(options_.dir);
  const Step step = manifest.schedule.step;
  const std::string writing = (dir / NameOf(kWritingPrefix, step)).string();
  const std::string folder = (dir / NameOf(kPrefix, step)).string();
  if (!IsCommitted(folder, manifest)) DT_TRY_STATUS(Complete(manifest, writing, folder));
  if (best) best_ = {step, folder};
  if (best) DT_TRY_STATUS(LinkBest());
  DT_TRY_STATUS(SyncPath(options_.dir));
  Remove(writing);  // Now holds the checkpoint that was replaced.
  std::erase(own_, folder);
  own_.push_back(folder);
  Prune();
  return folder;
}

Status CheckpointStore::Complete(const Manifest& manifest, const std::string& writing,
                                 const std::string& folder) {
  for (const CheckpointFile& file : manifest.files) {
    DT_TRY_STATUS(CheckName(file.name));
    DT_TRY_STATUS(CheckFile(writing, file));
  }
  DT_TRY_STATUS(WriteWholeFile((fs::path(writing) / kManifest).string(), ManifestToJson(manifest)));
  DT_TRY_STATUS(SyncFiles(writing, manifest.files));
  return PutInPlace(writing, folder);
}

Result<std::string> CheckpointStore::Find(Step step) const {
  const bool best = best_.has_value() && best_->step == step;
  const std::string folder =
      best ? best_->folder : (fs::path(options_.dir) / NameOf(kPrefix, step)).string();
  DT_TRY_STATUS(ReadManifest(folder).status());
  return folder;
}

Status CheckpointStore::LinkBest() const {
  const fs::path folder(best_->folder);
  const fs::path link = fs::path(options_.dir) / kBest;
  const fs::path temporary = fs::path(options_.dir) / ".best.writing";
  std::error_code error;
  const bool here = fs::equivalent(folder.parent_path(), options_.dir, error);
  fs::remove(temporary, error);
  fs::create_directory_symlink(here ? folder.filename() : folder, temporary, error);
  if (!error) fs::rename(temporary, link, error);
  return error ? DiskError("linking", link.string(), error.value()) : OkStatus();
}

void CheckpointStore::Prune() {
  for (const std::string& folder : older_) {
    if (std::find(own_.begin(), own_.end(), folder) == own_.end()) RemoveComplete(folder);
  }
  older_.clear();
  std::error_code error;
  // The link is from another run.
  if (!best_.has_value()) fs::remove(fs::path(options_.dir) / kBest, error);
  const std::string best = BestOf(options_.dir);
  std::vector<std::string> counted;
  for (const std::string& folder : own_) {
    if (fs::path(folder).filename() != best) counted.push_back(folder);
  }
  for (size_t i = 0; i + options_.keep < counted.size(); ++i) {
    RemoveComplete(counted[i]);
    std::erase(own_, counted[i]);
  }
}

}  // namespace dt::scheduler
