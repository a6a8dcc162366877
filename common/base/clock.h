// Time is passed in. Only one process's monotonic clock is ever compared with itself.
#pragma once

#include <chrono>
#include <string>

namespace dt {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::steady_clock::time_point;
using std::chrono::milliseconds;
using std::chrono::seconds;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
};

// The machine's monotonic clock. Any thread.
const Clock& SystemClock();
// For tests and simulation: stands still unless moved.
class ManualClock : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  void Advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{};
};

double SecondsBetween(TimePoint from, TimePoint to);
// Wall-clock time, in seconds since 1970.
double WallSeconds();
// Wall-clock time for logs and file names: "2026-01-31T12:00:00Z".
std::string WallTimeText();

}  // namespace dt
