// Where ranks of one process find each other.
#pragma once

#include <map>
#include <string>

#include "common/base/mutex.h"
#include "worker/collective/mesh.h"

namespace dt::worker {

class HashRendezvous : public Rendezvous {
 public:
  Status Put(const std::string& key, std::string value) override {
    MutexLock lock(mutex_);
    values_[key] = std::move(value);
    changed_.NotifyAll();
    return OkStatus();
  }
  Result<std::string> Get(const std::string& key, Duration timeout) override {
    const TimePoint deadline = SystemClock().Now() + timeout;
    MutexLock lock(mutex_);
    while (!values_.contains(key) && changed_.WaitUntil(lock, deadline)) {
    }
    if (!values_.contains(key)) return Timeout("nobody put {}", key);
    return values_[key];
  }

 private:
  Mutex mutex_;
  Condition changed_;
  std::map<std::string, std::string> values_ DT_GUARDED_BY(mutex_);
};

}  // namespace dt::worker
