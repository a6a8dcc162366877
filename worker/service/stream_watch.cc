#include "worker/service/stream_watch.h"

#include <algorithm>
#include <utility>

#include "common/base/pause.h"
#include "common/layout/owner.h"

namespace dt::worker {
namespace {

constexpr Duration kEvery = milliseconds(100);

}  // namespace

StreamWatch::StreamWatch(std::unique_ptr<KafkaReader> reader, uint32_t partitions, Send send)
    : reader_(std::move(reader)),
      partitions_(partitions),
      send_(std::move(send)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void StreamWatch::BeginView(const View& view, ProcessId self) {
  const auto found = std::ranges::find(view.workers, self);
  MutexLock lock(mutex_);
  workers_ = found == view.workers.end() ? 0 : view.workers.size();
  rank_ = static_cast<uint64_t>(found - view.workers.begin());
}

Status StreamWatch::problem() const {
  MutexLock lock(mutex_);
  return problem_;
}

void StreamWatch::Run(const std::stop_token& stop) {
  while (Pause(kEvery, stop)) {
    Status status = Report();
    if (status.ok() || stop.stop_requested()) continue;
    MutexLock lock(mutex_);
    problem_ = std::move(status);
    return;
  }
}

Status StreamWatch::Report() {
  MutexLock lock(mutex_);
  const uint64_t rank = rank_, workers = workers_;
  lock.Unlock();
  // Without brokers, librdkafka holds a question for a range up for longer than it is told to, but
  // not this one.
  DT_TRY_STATUS(reader_->Partitions().status());
  StreamReportMessage report;
  for (uint32_t p = 0; workers > 0 && p < partitions_; ++p) {
    if (OwnerOf(p, partitions_, workers) != rank) continue;
    DT_TRY(const OffsetRange range, reader_->Range(p));
    report.numbers.push_back(p);
    report.ranges.push_back({range.first, range.end});
  }
  if (!report.numbers.empty()) send_(std::move(report));
  return OkStatus();
}

}  // namespace dt::worker
