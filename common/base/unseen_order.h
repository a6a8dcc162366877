// An order between threads that is made inside a library. ThreadSanitizer does not see it when the
// library is built without instrumentation, as Debian's are. Whatever a thread did before
// `Release` comes before what another thread does after a later `Acquire`. Does nothing in other
// builds.
#pragma once

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace dt {

class UnseenOrder {
 public:
  void Release() {
#ifdef __SANITIZE_THREAD__
    __tsan_release(this);
#endif
  }
  void Acquire() {
#ifdef __SANITIZE_THREAD__
    __tsan_acquire(this);
#endif
  }
};

}  // namespace dt
