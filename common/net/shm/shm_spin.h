// Waiting without sleeping, while that pays: a message that comes within microseconds costs no
// system call, and a side that would wait longer does not hold a processor for it.
#pragma once

#include "common/base/clock.h"

namespace dt {

class ShmSpin {
 public:
  // As long as a server reads some thousand rows. Measured: less makes pulls of 4,096 rows slower,
  // more does not make them faster.
  static constexpr Duration kTime = std::chrono::microseconds(100);

  // True as soon as `ready()` is. Gives up after kTime; the next call then gives up at once, until
  // a sleep was so short that spinning would have saved it.
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
