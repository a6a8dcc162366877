#include "server/storage/row_files.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "common/base/check.h"
#include "common/base/folder.h"
#include "common/base/pause.h"
#include "common/rows/row_keys.h"
#include "common/storage/copy_file.h"
#include "common/storage/file_digest.h"

namespace dt::server {
namespace {

namespace fs = std::filesystem;

constexpr Duration kMergingPause = milliseconds(20);
constexpr std::string_view kRowsSuffix = ".sst";

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string Renamed(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Row files never change and are linked; the others, which RocksDB rewrites, are copied.
std::error_code CopyOrLink(const fs::path& from, const fs::path& to) {
  return from.extension() == kRowsSuffix ? LinkOrCopy(from, to) : CopyFile(from, to);
}

}  // namespace

RowFiles::RowFiles(std::string parent, RowsDb::Options options)
    : parent_(std::move(parent)), options_(std::move(options)) {}

Status RowFiles::MakeFolder() {
  if (scratch_.has_value()) return OkStatus();
  Result<ScratchDir> made = ScratchDir::Make(parent_, "rows");
  if (!made.ok()) {
    return WithHint(made.status(), "make it writable, or give cluster.server.dir another one");
  }
  scratch_.emplace(*std::move(made));
  folder_ = scratch_->path() + "/db";
  return OkStatus();
}

Status RowFiles::Adopt(const std::string& checkpoint, std::span<const ShardId> held) {
  DT_CHECK(own_db_ == nullptr);
  DT_TRY_STATUS(MakeFolder());
  std::error_code error;
  fs::create_directory(folder_, error);
  DT_TRY(const std::vector<fs::path> files, ListFolder(checkpoint));
  for (size_t i = 0; i < files.size() && !error; ++i) {
    error = CopyOrLink(files[i], fs::path(folder_) / files[i].filename());
  }
  if (error) {
    return WithHint(Unavailable("copying {} to {}: {}", checkpoint, folder_, error.message()),
                    "cluster.server.dir must be writable, and have room for the rows");
  }
  Status opened = OpenAdopted(held);
  if (opened.code() != StatusCode::kDataLoss) return opened;
  // The error then names the checkpoint's file.
  return DataLoss("{}", Renamed(std::string(MessageOf(opened)), folder_, checkpoint));
}

Status RowFiles::OpenAdopted(std::span<const ShardId> held) {
  DT_TRY(own_db_, RowsDb::Open(folder_, options_));
  db_ = own_db_.get();
  return RemoveAllBut(held);
}

// Shards that were coming or going at the time of a checkpoint may have left rows in its files.
Status RowFiles::RemoveAllBut(std::span<const ShardId> held) {
  std::vector<ShardId> others;
  const std::unique_ptr<RowsDb::Cursor> at = own_db_->Read();
  DT_TRY_STATUS(at->Seek(ShardKey(ShardId(0))));
  while (at->valid()) {
    if (at->key().size() < sizeof(ShardId)) return DataLoss("a key of {} bytes", at->key().size());
    const ShardId shard = ShardOfKey(at->key());
    if (!std::ranges::binary_search(held, shard)) others.push_back(shard);
    DT_TRY_STATUS(at->Seek(ShardEndKey(shard)));
  }
  for (const ShardId shard : others) DT_TRY_STATUS(Remove(shard));
  return OkStatus();
}

// Opens the files late, so that a server that needs no disk leaves no trace on it.
Status RowFiles::Open() {
  if (own_db_ != nullptr) return OkStatus();
  DT_TRY_STATUS(MakeFolder());
  DT_TRY(own_db_, RowsDb::Create(folder_, options_));
  db_ = own_db_.get();
  return OkStatus();
}

Status RowFiles::Write(const RowRun& run, const std::stop_token& stop) {
  DT_TRY_STATUS(Open());
  own_db_->ReleaseMerges();
  while (own_db_->Crowded() && Pause(kMergingPause, stop)) {
    DT_TRY_STATUS(own_db_->merge_problem());
  }
  const std::vector<RowRun::Entry> entries = run.Sorted();
  if (entries.empty()) return OkStatus();
  std::unique_ptr<RowsDb::File> file = own_db_->NewFile(run.bytes());
  for (const RowRun::Entry& entry : entries) {
    DT_TRY_STATUS(file->Add(entry.key.text(), TextOf(entry.record(run))));
  }
  return own_db_->Ingest(std::move(file));
}

Status RowFiles::Remove(ShardId shard) {
  if (own_db_ == nullptr) return OkStatus();
  own_db_->ReleaseMerges();
  return own_db_->RemoveRange(ShardKey(shard), ShardEndKey(shard));
}

Status RowFiles::MakeCheckpoint(CheckpointTask& task) {
  DT_TRY_STATUS(Open());
  // Merging the files that are linked now would be in vain: merges go on with the next run.
  own_db_->HoldMerges();
  std::unique_ptr<RowsDb::File> file = own_db_->NewFile(4096);
  for (const auto& [key, value] : task.notes) DT_TRY_STATUS(file->Add(key, value));
  DT_TRY_STATUS(own_db_->Ingest(std::move(file)));
  std::error_code error;
  fs::create_directories(fs::path(task.folder).parent_path(), error);
  if (error) {
    return WithHint(Unavailable("making folder {}: {}", task.folder, error.message()),
                    error == std::errc::no_space_on_device
                        ? "make room there, or choose another folder"
                        : "checkpoint.dir must be writable by every process");
  }
  DT_TRY_STATUS(own_db_->Checkpoint(task.folder));
  return Digest(task);
}

// Row files are numbered and never change, so each is read once.
Result<CheckpointFile> RowFiles::DigestOnce(const std::string& path,
                                            const std::string& name) const {
  if (const auto known = digests_.find(name); known != digests_.end()) return known->second;
  DT_TRY(const FileDigest digest, DigestOf(path));
  return CheckpointFile{.name = {}, .bytes = digest.bytes, .digest = digest.digest};
}

Status RowFiles::Digest(CheckpointTask& task) {
  absl::flat_hash_map<std::string, CheckpointFile> digests;
  DT_TRY(const std::vector<fs::path> files, ListFolder(task.folder));
  for (const fs::path& path : files) {
    const std::string name = path.filename().string();
    DT_TRY(CheckpointFile file, DigestOnce(path.string(), name));
    if (path.extension() == kRowsSuffix) digests[name] = file;
    file.name = task.name + "/" + name;
    task.files.push_back(std::move(file));
  }
  digests_ = std::move(digests);
  return OkStatus();
}

void RowFiles::Read(RowFetch& fetch) const {
  std::vector<uint32_t> order(fetch.rows.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto key_of = [&](uint32_t i) { return fetch.rows[i].key.text(); };
  std::ranges::sort(order, {}, key_of);
  std::vector<std::string_view> sorted(order.size());
  std::ranges::transform(order, sorted.begin(), key_of);
  fetch.records.reserve(fetch.bytes_max);  // No reallocation: the rows point into it.
  if (db() == nullptr) return;
  fetch.status = db()->MultiGet(sorted, [&](size_t i, std::optional<std::string_view> value) {
    if (!value.has_value() || fetch.records.size() + value->size() > fetch.bytes_max) return;
    const size_t at = fetch.records.size();
    const auto* const begin = reinterpret_cast<const std::byte*>(value->data());
    fetch.records.insert(fetch.records.end(), begin, begin + value->size());
    fetch.rows[order[i]].record = std::span(fetch.records).subspan(at);
  });
}

}  // namespace dt::server
