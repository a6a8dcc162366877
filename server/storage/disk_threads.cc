#include "server/storage/disk_threads.h"

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/pause.h"
#include "common/base/thread_name.h"

namespace dt::server {
namespace {

constexpr Duration kWait = seconds(5);  // Work ends a wait, and so does the end of the queue.
constexpr Duration kRetry = milliseconds(500);

}  // namespace

DiskThreads::DiskThreads(Options options)
    : wake_(std::move(options.wake)),
      files_(std::move(options.folder), std::move(options.rows)),
      writer_([this](const std::stop_token& stop) { RunWriter(stop); }),
      reader_([this](const std::stop_token& stop) { RunReader(stop); }) {}

DiskThreads::~DiskThreads() {
  writer_.request_stop();
  reader_.request_stop();
  writes_.Close();
  fetches_.Close();
}

// ------------------------------------------------------------ the executor's thread

void DiskThreads::Give(WriteTask task) {
  ++writes_under_way_;
  DT_CHECK(writes_.TryPush(task));
}

bool DiskThreads::TryWrite(const std::shared_ptr<const RowRun>& run) {
  if (writes_under_way_ == kWritesMax) return false;
  Give(run);
  return true;
}

bool DiskThreads::TryRemove(ShardId shard) {
  if (writes_under_way_ == kWritesMax) return false;
  Give(shard);
  return true;
}

bool DiskThreads::TryMake(std::unique_ptr<CheckpointTask>& task) {
  if (writes_under_way_ == kWritesMax) return false;
  Give(std::move(task));
  return true;
}

bool DiskThreads::TryFetch(std::unique_ptr<RowFetch>& fetch) {
  if (fetches_under_way_ == kFetchesMax) return false;
  ++fetches_under_way_;
  DT_CHECK(fetches_.TryPush(fetch));
  return true;
}

std::optional<DiskThreads::Done> DiskThreads::Take(Duration timeout) {
  std::optional<Done> done = done_.Pop(timeout);
  if (done.has_value()) --(done->fetched != nullptr ? fetches_under_way_ : writes_under_way_);
  return done;
}

Status DiskThreads::write_problem() const {
  MutexLock lock(mutex_);
  return problem_;
}

// ------------------------------------------------------------ the two disk threads

void DiskThreads::NoteProblem(Status status) {
  MutexLock lock(mutex_);
  problem_ = std::move(status);
}

void DiskThreads::Finish(Done done) {
  DT_CHECK(done_.TryPush(done));
  wake_();
}

void DiskThreads::RunWriter(const std::stop_token& stop) {
  NameThread("disk-writer");
  while (!stop.stop_requested()) {
    std::optional<WriteTask> task = writes_.Pop(kWait);
    if (!task.has_value()) continue;
    if (auto* const checkpoint = std::get_if<std::unique_ptr<CheckpointTask>>(&*task)) {
      (*checkpoint)->status = files_.MakeCheckpoint(**checkpoint);
      Finish({.made = std::move(*checkpoint)});
      continue;
    }
    if (const ShardId* const shard = std::get_if<ShardId>(&*task)) {
      if (!DoAtLast([&] { return files_.Remove(*shard); }, stop)) return;
      Finish({.removed = *shard});
      continue;
    }
    const auto run = std::get<std::shared_ptr<const RowRun>>(std::move(*task));
    if (!DoAtLast([&] { return files_.Write(*run, stop); }, stop)) return;
    Finish({.written = run});
  }
}

bool DiskThreads::DoAtLast(const std::function<Status()>& attempt, const std::stop_token& stop) {
  for (Status done = attempt(); !done.ok(); done = attempt()) {
    if (write_problem().ok()) LogWarn("server.disk_problem", {{"problem", ToText(done)}});
    NoteProblem(std::move(done));
    wake_();
    if (!Pause(kRetry, stop)) return false;
  }
  NoteProblem(OkStatus());
  return true;
}

void DiskThreads::RunReader(const std::stop_token& stop) {
  NameThread("disk-reader");
  while (!stop.stop_requested()) {
    std::optional<std::unique_ptr<RowFetch>> fetch = fetches_.Pop(kWait);
    if (!fetch.has_value()) continue;
    files_.Read(**fetch);
    Finish({.fetched = *std::move(fetch)});
  }
}

}  // namespace dt::server
