// Measures how the processors' time divides over kinds of work, by sampling: each thread is
// interrupted now and then by a timer of its own processor time, and its WorkSpan noted. (As
// gperftools and the runtime of Go do.) The kernel's tick, 4 ms on many systems, limits how often.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/runtime/work_span.h"

namespace dt {

struct WorkShare {
  const WorkKind* work = nullptr;
  std::string thread;  // The thread's name, as the system knows it.
  double seconds = 0;  // Processor time.
};

struct WorkShares {
  std::vector<WorkShare> shares;
  struct Moved {
    const WorkKind* work = nullptr;
    uint64_t bytes = 0, flops = 0;
  };
  std::vector<Moved> moved;  // One for each work that `shares` name.
  double wall_seconds = 0;
  double cpu_seconds = 0;     // The processor time of the whole process.
  double kernel_seconds = 0;  // The part of cpu_seconds that was spent in the kernel.
};

class WorkProfile {
 public:
  // Begins. Threads that do not exist yet, or that end before Finish, are left out. REQUIRES: the
  // process has no other profile under way, and the kernel interrupts no system calls for timers of
  // processor time (Linux on x86 does not, from 5.10 on). Errors: Unavailable, if the system gives
  // no timers.
  static Result<std::unique_ptr<WorkProfile>> Begin();
  virtual ~WorkProfile() = default;  // Ends it.

  // Ends it, and returns what was measured. To be called once.
  virtual WorkShares Finish() = 0;
};

}  // namespace dt
