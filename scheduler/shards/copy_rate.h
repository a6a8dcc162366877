// How fast servers copy shards, all of them together, from what they report.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "common/base/clock.h"
#include "common/base/ids.h"

namespace dt::scheduler {

class CopyRate {
 public:
  // `copied_bytes`: ChainReport::copied_bytes of this server.
  void OnReport(TimePoint now, ProcessId server, uint64_t copied_bytes);
  // Over the last seconds; nothing in the first one.
  std::optional<double> bytes_per_second() const;

 private:
  struct Point {
    TimePoint at{};
    uint64_t bytes = 0;
  };
  std::map<ProcessId, uint64_t> reported_;
  uint64_t bytes_ = 0;        // Copied since the first report of each server.
  std::deque<Point> points_;  // The first is the last one before the window, if there is one.
};

}  // namespace dt::scheduler
