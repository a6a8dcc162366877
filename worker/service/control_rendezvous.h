// Ranks find each other through the scheduler.
#pragma once

#include <functional>
#include <string>

#include "common/base/clock.h"
#include "common/control/control_link.h"
#include "worker/collective/mesh.h"

namespace dt::worker {

class ControlRendezvous : public Rendezvous {
 public:
  // `interrupted`: not OK ends every wait.
  ControlRendezvous(ControlLink& link, std::function<Status()> interrupted)
      : link_(link), interrupted_(std::move(interrupted)) {}

  Status Put(const std::string& key, std::string value) override {
    link_.Put(key, std::move(value));
    return OkStatus();
  }
  Result<std::string> Get(const std::string& key, Duration timeout) override {
    const TimePoint deadline = SystemClock().Now() + timeout;
    for (;;) {
      Result<std::string> value = link_.Get(key, kPoll);
      if (value.status().code() != StatusCode::kDeadlineExceeded) return value;
      if (interrupted_) DT_TRY_STATUS(interrupted_());
      if (SystemClock().Now() >= deadline) return value;
    }
  }

 private:
  static constexpr Duration kPoll = milliseconds(100);

  ControlLink& link_;
  const std::function<Status()> interrupted_;
};

}  // namespace dt::worker
