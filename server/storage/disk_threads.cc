#include "server/storage/disk_threads.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/storage/file_digest.h"

namespace dt::server {
namespace {

constexpr Duration kPoll = milliseconds(200);  // How soon a stop is noticed at the latest.
constexpr Duration kRetry = milliseconds(500);
constexpr Duration kMergingPause = milliseconds(20);

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string Renamed(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace

DiskThreads::DiskThreads(Options options)
    : options_(std::move(options)),
      writer_([this](std::stop_token stop) { RunWriter(stop); }),
      reader_([this](std::stop_token stop) { RunReader(stop); }) {}

DiskThreads::~DiskThreads() {
  writer_.request_stop();
  reader_.request_stop();
  writes_.Close();
  fetches_.Close();
}

void DiskThreads::Write(std::shared_ptr<const RowRun> run) {
  WriteTask task = std::move(run);
  DT_CHECK(writes_.TryPush(task));
}

void DiskThreads::Make(std::unique_ptr<CheckpointTask> task) {
  WriteTask write = std::move(task);
  DT_CHECK(writes_.TryPush(write));
}

void DiskThreads::Fetch(std::unique_ptr<RowFetch> fetch) { DT_CHECK(fetches_.TryPush(fetch)); }

void DiskThreads::Finish(Done done) {
  DT_CHECK(done_.TryPush(done));
  options_.wake();
}

Status DiskThreads::write_problem() const {
  std::lock_guard lock(mutex_);
  return problem_;
}

void DiskThreads::NoteProblem(Status status) {
  std::lock_guard lock(mutex_);
  problem_ = std::move(status);
}

Status DiskThreads::MakeFolder() {
  if (scratch_.has_value()) return OkStatus();
  Result<ScratchDir> made = ScratchDir::Make(options_.folder, "rows");
  if (!made.ok()) {
    return WithHint(made.status(), "make it writable, or give cluster.server.dir another one");
  }
  scratch_.emplace(*std::move(made));
  folder_ = scratch_->path() + "/db";
  return OkStatus();
}

// Files of rows never change and are linked; RocksDB rewrites the others, so they are copied.
Status DiskThreads::Adopt(const std::string& checkpoint) {
  namespace fs = std::filesystem;
  DT_CHECK(own_db_ == nullptr);
  DT_TRY_STATUS(MakeFolder());
  std::error_code error;
  fs::create_directory(folder_, error);
  for (const fs::directory_entry& file : fs::directory_iterator(checkpoint, error)) {
    const fs::path copy = fs::path(folder_) / file.path().filename();
    if (file.path().extension() == ".sst") {
      fs::create_hard_link(file.path(), copy, error);
      if (!error) continue;
    }
    fs::copy_file(file.path(), copy, error);
    if (error) break;
  }
  if (error) {
    return WithHint(Unavailable("copying {} to {}: {}", checkpoint, folder_, error.message()),
                    "cluster.server.dir must be writable, and have room for the rows");
  }
  Result<std::unique_ptr<RowsDb>> opened = RowsDb::Open(folder_, options_.rows);
  if (opened.status().code() == StatusCode::kDataLoss) {  // The error names the checkpoint's file.
    return DataLoss("{}", Renamed(std::string(MessageOf(opened.status())), folder_, checkpoint));
  }
  DT_TRY(own_db_, std::move(opened));
  db_ = own_db_.get();
  return OkStatus();
}

// A server that needs no disk leaves no trace on it.
Status DiskThreads::Open() {
  if (own_db_ != nullptr) return OkStatus();
  DT_TRY_STATUS(MakeFolder());
  DT_TRY(own_db_, RowsDb::Create(folder_, options_.rows));
  db_ = own_db_.get();
  return OkStatus();
}

// ------------------------------------------------------------ writing

void DiskThreads::RunWriter(std::stop_token stop) {
  while (!stop.stop_requested()) {
    std::optional<WriteTask> task = writes_.Pop(kPoll);
    if (!task.has_value()) continue;
    if (auto* const checkpoint = std::get_if<std::unique_ptr<CheckpointTask>>(&*task)) {
      (*checkpoint)->status = MakeCheckpoint(**checkpoint);
      Finish({.made = std::move(*checkpoint)});
      continue;
    }
    const auto run = std::get<std::shared_ptr<const RowRun>>(std::move(*task));
    for (Status written = WriteRun(*run, stop); !written.ok(); written = WriteRun(*run, stop)) {
      if (write_problem().ok()) LogWarn("server.disk_problem", {{"problem", ToText(written)}});
      NoteProblem(std::move(written));
      options_.wake();
      if (!Rest(kRetry, stop)) return;
    }
    NoteProblem(OkStatus());
    Finish({.written = run});
  }
}

bool DiskThreads::Rest(Duration time, std::stop_token stop) {
  std::unique_lock lock(mutex_);
  resting_.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

Status DiskThreads::WriteRun(const RowRun& run, std::stop_token stop) {
  DT_TRY_STATUS(Open());
  own_db_->ReleaseMerges();
  while (own_db_->Crowded() && Rest(kMergingPause, stop)) {
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

Status DiskThreads::MakeCheckpoint(CheckpointTask& task) {
  DT_TRY_STATUS(Open());
  // What is linked is not written again for nothing: merges go on with the next run.
  own_db_->HoldMerges();
  std::unique_ptr<RowsDb::File> file = own_db_->NewFile(4096);
  for (const auto& [key, value] : task.notes) DT_TRY_STATUS(file->Add(key, value));
  DT_TRY_STATUS(own_db_->Ingest(std::move(file)));
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(task.folder).parent_path(), error);
  if (error) {
    return WithHint(Unavailable("making folder {}: {}", task.folder, error.message()),
                    error == std::errc::no_space_on_device
                        ? "make room there, or choose another folder"
                        : "checkpoint.dir must be writable by every process");
  }
  DT_TRY_STATUS(own_db_->Checkpoint(task.folder));
  return Digest(task);
}

// Files of rows are numbered and never change: each is read once.
Status DiskThreads::Digest(CheckpointTask& task) {
  namespace fs = std::filesystem;
  std::error_code error;
  absl::flat_hash_map<std::string, CheckpointFile> digests;
  for (const fs::directory_entry& entry : fs::directory_iterator(task.folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool rows = entry.path().extension() == ".sst";
    CheckpointFile file;
    if (const auto known = digests_.find(name); rows && known != digests_.end()) {
      file = known->second;
    } else {
      DT_TRY(const FileDigest digest, DigestOf(entry.path().string()));
      file = {.name = {}, .bytes = digest.bytes, .digest = digest.digest};
    }
    if (rows) digests[name] = file;
    file.name = task.name + "/" + name;
    task.files.push_back(std::move(file));
  }
  digests_ = std::move(digests);
  if (error) return Unavailable("reading folder {}: {}", task.folder, error.message());
  std::ranges::sort(task.files, {}, &CheckpointFile::name);
  return OkStatus();
}

// ------------------------------------------------------------ reading

void DiskThreads::RunReader(std::stop_token stop) {
  while (!stop.stop_requested()) {
    std::optional<std::unique_ptr<RowFetch>> task = fetches_.Pop(kPoll);
    if (!task.has_value()) continue;
    RowFetch& fetch = **task;
    std::vector<RowKey> keys(fetch.rows.size());
    std::ranges::transform(fetch.rows, keys.begin(), [](const RowFetch::Row& row) {
      return RowKey(row.table->shard(), row.table->spec().id, row.key);
    });
    std::vector<uint32_t> order(keys.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, {}, [&](uint32_t i) { return keys[i].text(); });
    std::vector<std::string_view> sorted(keys.size());
    std::ranges::transform(order, sorted.begin(), [&](uint32_t i) { return keys[i].text(); });
    size_t bytes = 0;
    for (const RowFetch::Row& row : fetch.rows) bytes += row.table->record_bytes();
    fetch.records.reserve(bytes);
    if (db() != nullptr)
      fetch.status = db()->MultiGet(sorted, [&](size_t i, std::optional<std::string_view> value) {
        if (!value.has_value() || fetch.records.size() + value->size() > bytes) return;
        const size_t at = fetch.records.size();
        const auto* const begin = reinterpret_cast<const std::byte*>(value->data());
        fetch.records.insert(fetch.records.end(), begin, begin + value->size());
        fetch.rows[order[i]].record = std::span(fetch.records).subspan(at);
      });
    Finish({.fetched = *std::move(task)});
  }
}

}  // namespace dt::server
