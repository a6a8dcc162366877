// Waits without sleeping while that pays: a message that arrives within microseconds then costs no
// system call, and a longer wait does not keep a processor busy.
#pragma once

#include "common/base/clock.h"

namespace dt {

class ShmSpin {
 public:
  // About the time in which a server reads some thousand rows. Measured: less makes pulls of 4,096
  // rows slower, more does not make them faster.
  static constexpr Duration kTime = std::chrono::microseconds(100);

  // Returns true as soon as `ready()` does, and false after kTime. After a failure, calls return
  // false at once until a sleep was so short that spinning would have avoided it.
  template <class Ready>
  bool Until(Ready ready) {
    if (!pays_) return false;
    const TimePoint end = SystemClock().Now() + kTime;
    do {
      for (int i = 0; i < 32; ++i) {
        if (ready()) return true;
        Relax();
      }
    } while (SystemClock().Now() < end);
    pays_ = false;
    return false;
  }
  void Slept(Duration time) { pays_ = time < 2 * kTime; }

 private:
  static void Relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  bool pays_ = true;
};

}  // namespace dt
