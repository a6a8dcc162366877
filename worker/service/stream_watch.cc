#include "worker/service/stream_watch.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "common/base/pause.h"
#include "common/base/thread_name.h"
#include "common/layout/owner.h"

namespace dt::worker {
namespace {

constexpr Duration kEvery = milliseconds(100);

}  // namespace

std::shared_ptr<void> RepeatOnThread(Duration every, std::function<bool()> what) {
  return std::make_shared<std::jthread>(
      [every, what = std::move(what)](const std::stop_token& stop) {
        NameThread("stream-watch");
        while (Pause(every, stop) && what()) {
        }
      });
}

StreamWatch::StreamWatch(std::unique_ptr<MessageReader> reader, uint32_t partitions, Send send,
                         const Repeat& repeat)
    : reader_(std::move(reader)),
      send_(std::move(send)),
      known_(partitions),
      repeated_(repeat(kEvery, [this] {
        Status status = Report();
        if (status.ok()) return true;
        MutexLock lock(mutex_);
        problem_ = std::move(status);
        return false;
      })) {}

void StreamWatch::Begin(std::vector<uint64_t> known) {
  MutexLock lock(mutex_);
  known.resize(known_.size());
  known_ = std::move(known);
}

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

Status StreamWatch::Report() {
  MutexLock lock(mutex_);
  const uint64_t rank = rank_, workers = workers_;
  std::vector<uint64_t> known = known_;
  lock.Unlock();
  // Without brokers, librdkafka holds a question for a range up for longer than it is told to, but
  // not this one.
  DT_TRY_STATUS(reader_->Partitions().status());
  StreamReportMessage report;
  for (uint32_t p = 0; workers > 0 && p < known.size(); ++p) {
    if (OwnerOf(p, known.size(), workers) != rank) continue;
    DT_TRY(known[p], reader_->End(p, known[p]));
    report.numbers.push_back(p);
    report.ranges.push_back({0, known[p]});
  }
  if (!report.numbers.empty()) send_(std::move(report));
  return OkStatus();
}

}  // namespace dt::worker
