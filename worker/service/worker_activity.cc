#include "worker/service/worker_activity.h"

#include <string_view>
#include <utility>

namespace dt::worker {
namespace {

// A wait of which nothing has been said for so long is over.
constexpr Duration kWaitGap = seconds(1);

}  // namespace

void WorkerActivity::BeginView(const View& view) {
  MutexLock lock(mutex_);
  view_ = view.number;
  workers_ = view.workers;
  wait_.reset();
  broken_.reset();
}

void WorkerActivity::AwaitPeer(TimePoint now, uint32_t rank, TimePoint since) {
  MutexLock lock(mutex_);
  if (rank >= workers_.size() || broken_.has_value()) return;
  wait_ = {workers_[rank], since, now};
}

void WorkerActivity::Break(TimePoint now) {
  MutexLock lock(mutex_);
  if (!broken_.has_value()) broken_ = now;
}

void WorkerActivity::AddTo(TimePoint now, HeartbeatMessage& heartbeat) const {
  const std::pair<std::string_view, const Activity*> all[] = {
      {"train", &threads_.train}, {"reader", &threads_.reader}, {"exchange", &threads_.exchange}};
  for (const auto& [name, activity] : all) {
    const Doing doing = activity->Now();
    if (doing.what.empty()) continue;
    heartbeat.threads.push_back({std::string(name), TextOf(doing), SecondsBetween(doing.since, now),
                                 doing.step != kNoStep, doing.waits});
  }
  heartbeat.reading = reading_;
  MutexLock lock(mutex_);
  PeerReport& peers = heartbeat.peers;
  peers = {.view = view_};
  if (wait_ && (broken_ || now - wait_->last <= kWaitGap)) {
    peers.awaited = wait_->peer;
    peers.seconds = SecondsBetween(wait_->since, now);
  }
  if (!broken_) return;
  peers.broken = true;
  peers.seconds = SecondsBetween(*broken_, now);
}

}  // namespace dt::worker
