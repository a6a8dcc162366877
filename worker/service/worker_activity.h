// Collects what a worker does and waits for, for its heartbeats. Any thread.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "common/base/mutex.h"
#include "common/cluster/view.h"
#include "common/control/reports.h"
#include "common/metrics/activity.h"

namespace dt::worker {

class WorkerActivity {
 public:
  Activities& threads() { return threads_; }

  // The connections to the others of this view are being made, or are there.
  void BeginView(const View& view);
  // As MeshLimits::awaits is told.
  void AwaitPeer(TimePoint now, uint32_t rank, TimePoint since);
  // The connections are of no use any more.
  void Break(TimePoint now);
  // While one lives, the worker reads data that it needs for a view.
  class Reading {
   public:
    explicit Reading(WorkerActivity& of) : of_(of) { of_.reading_ = true; }
    ~Reading() { of_.reading_ = false; }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    WorkerActivity& of_;
  };
  void AddTo(TimePoint now, HeartbeatMessage& heartbeat) const;

 private:
  struct Wait {
    ProcessId peer;
    TimePoint since{}, last{};
  };

  Activities threads_;
  std::atomic<bool> reading_ = false;
  mutable Mutex mutex_;
  ViewNumber view_ DT_GUARDED_BY(mutex_);
  std::vector<ProcessId> workers_ DT_GUARDED_BY(mutex_);  // By rank.
  std::optional<Wait> wait_ DT_GUARDED_BY(mutex_);
  std::optional<TimePoint> broken_ DT_GUARDED_BY(mutex_);  // Since then.
};

}  // namespace dt::worker
