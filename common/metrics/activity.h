// Threads tell what they do at this moment, and since when, for people who ask why a job stands
// still. An Activity is written by its thread and read by any.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"

namespace dt {

// For what is not part of a step.
inline constexpr Step kNoStep = ~Step{0};

struct Doing {
  std::string what;    // Empty: it waits for work.
  bool waits = false;  // For somebody else.
  Step step = kNoStep;
  TimePoint since{};
};

// "waits for rows of step 7", "run slice of step 7"; empty: it waits for work.
std::string TextOf(const Doing& doing);

class Activity {
 public:
  // Like Doing, with a text of somebody else's.
  struct Begun {
    std::string_view what;
    bool waits = false;
    Step step = kNoStep;
    TimePoint since{};
  };
  // Begins something, whose text lives until the next call. Returns what the thread did before, to
  // go back to.
  Begun Set(const Begun& begun) {
    MutexLock lock(mutex_);
    return std::exchange(begun_, begun);
  }
  Doing Now() const {
    MutexLock lock(mutex_);
    return {std::string(begun_.what), begun_.waits, begun_.step, begun_.since};
  }

 private:
  mutable Mutex mutex_;
  Begun begun_ DT_GUARDED_BY(mutex_);
};

// The threads of a worker that may wait for others.
struct Activities {
  Activity train, reader, exchange;
};

}  // namespace dt
