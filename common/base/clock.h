// Code gets its clock as a parameter. Time points are compared only within one process, because
// each machine has its own monotonic clock.
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
// A clock for tests and simulation: it moves only by Advance.
class ManualClock : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  void Advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{};
};

double SecondsBetween(TimePoint from, TimePoint to);
// Wall-clock time in seconds since 1970.
double WallSeconds();
// Wall-clock time for logs and file names: "2026-01-31T12:00:00Z".
std::string WallTimeText();

}  // namespace dt
