#include "scheduler/checkpoint/checkpoint_store.h"

#include <algorithm>
#include <filesystem>

#include "common/base/log.h"
#include "scheduler/checkpoint/files.h"

namespace dt::scheduler {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kWritingPrefix = ".writing-";
constexpr char kManifest[] = "manifest.json";
constexpr char kBest[] = "best";

std::string NameOf(std::string_view prefix, Step step) {
  return fmt::format("{}{:012}", prefix, step);
}

// The step of "step-000000001000".
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

// Of a complete folder, its place among those of its directory: the one before it.
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

// A name that stays inside the folder: manifests are read from disk, and reports come from peers.
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

}  // namespace

std::vector<CheckpointInfo> ListCheckpoints(const std::string& dir) {
  std::vector<CheckpointInfo> all;
  std::error_code error;
  const std::string best = BestOf(dir);
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename().string();
    const std::optional<Step> step = StepOf(name);
    if (!step.has_value()) continue;
    CheckpointInfo& info = all.emplace_back();
    info.folder = entry.path().string();
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

Status VerifyCheckpoint(const std::string& folder) {
  const Result<Manifest> manifest = ReadManifest(folder);
  if (!manifest.ok()) return Damaged(folder, manifest.status());
  for (const CheckpointFile& file : manifest->files) {
    Status status = CheckFile(folder, file);
    if (!status.ok()) return Damaged(folder, std::move(status));
    const std::string path = (fs::path(folder) / file.name).string();
    DT_TRY(const uint64_t digest, DigestOfFile(path));
    if (digest != file.digest) {
      return Damaged(folder, WithWhere(DataLoss("a file of the checkpoint is damaged: its digest "
                                                "differs from the manifest's"),
                                       path));
    }
  }
  return OkStatus();
}

Result<std::optional<std::string>> NewestCheckpoint(const std::string& dir) {
  const std::vector<CheckpointInfo> all = ListCheckpoints(dir);
  if (all.empty()) return std::optional<std::string>();
  const std::string& folder = all.back().folder;
  DT_TRY_STATUS(VerifyCheckpoint(folder));
  return std::optional<std::string>(Absolute(folder));
}

Result<CheckpointStore> CheckpointStore::Open(const Options& options) {
  Options absolute = options;
  absolute.dir = Absolute(options.dir);
  absolute.keep = std::max(1u, options.keep);
  std::error_code error;
  fs::create_directories(absolute.dir, error);
  if (error) {
    return WithHint(Unavailable("the folder of checkpoints {} cannot be made: {}", absolute.dir,
                                error.message()),
                    "set checkpoint.dir to a folder that this user can write");
  }
  CheckpointStore store(absolute);
  for (const fs::directory_entry& entry : fs::directory_iterator(absolute.dir, error)) {
    if (entry.path().filename().string().starts_with(kWritingPrefix)) Remove(entry.path());
  }
  for (const CheckpointInfo& info : ListCheckpoints(absolute.dir)) {
    const bool own = options.resumed.has_value() && info.step <= *options.resumed;
    (own ? store.own_ : store.older_).push_back(info.folder);
  }
  return store;
}

Result<std::string> CheckpointStore::Begin(Step step) {
  const fs::path folder = fs::path(options_.dir) / NameOf(kWritingPrefix, step);
  Remove(folder);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return DiskError("making", folder.string(), error.value());
  return folder.string();
}

Result<std::string> CheckpointStore::Commit(const Manifest& manifest, bool best) {
  const fs::path dir(options_.dir);
  const Step step = manifest.course.step;
  const std::string writing = (dir / NameOf(kWritingPrefix, step)).string();
  const std::string folder = (dir / NameOf(kPrefix, step)).string();
  for (const CheckpointFile& file : manifest.files) {
    DT_TRY_STATUS(CheckName(file.name));
    DT_TRY_STATUS(CheckFile(writing, file));
    DT_TRY_STATUS(SyncPath((fs::path(writing) / file.name).string()));
  }
  DT_TRY_STATUS(WriteWholeFile((fs::path(writing) / kManifest).string(), ManifestToJson(manifest)));
  DT_TRY_STATUS(SyncPath(writing));
  std::error_code error;
  if (fs::exists(folder, error)) Remove(folder);  // Of an earlier run.
  fs::rename(writing, folder, error);
  if (error) return DiskError("naming", folder, error.value());
  if (best) DT_TRY_STATUS(LinkBest(folder));
  DT_TRY_STATUS(SyncPath(options_.dir));
  std::erase(own_, folder);
  own_.push_back(folder);
  Prune();
  return folder;
}

Result<std::string> CheckpointStore::Find(Step step) const {
  const std::string folder = (fs::path(options_.dir) / NameOf(kPrefix, step)).string();
  DT_TRY_STATUS(ReadManifest(folder).status());
  return folder;
}

Status CheckpointStore::LinkBest(const std::string& folder) {
  const fs::path link = fs::path(options_.dir) / kBest;
  const fs::path temporary = fs::path(options_.dir) / ".best.writing";
  std::error_code error;
  fs::remove(temporary, error);
  fs::create_directory_symlink(fs::path(folder).filename(), temporary, error);
  if (!error) fs::rename(temporary, link, error);
  return error ? DiskError("linking", link.string(), error.value()) : OkStatus();
}

void CheckpointStore::Prune() {
  for (const std::string& folder : older_) {
    if (std::find(own_.begin(), own_.end(), folder) == own_.end()) Remove(folder);
  }
  if (!older_.empty()) {  // A link to what has just gone.
    std::error_code error;
    const fs::path link = fs::path(options_.dir) / kBest;
    if (fs::is_symlink(link, error) && !fs::exists(link, error)) fs::remove(link, error);
  }
  older_.clear();
  const std::string best = BestOf(options_.dir);
  std::vector<std::string> counted;
  for (const std::string& folder : own_) {
    if (fs::path(folder).filename() != best) counted.push_back(folder);
  }
  for (size_t i = 0; i + options_.keep < counted.size(); ++i) {
    Remove(counted[i]);
    std::erase(own_, counted[i]);
  }
}

}  // namespace dt::scheduler
