// Tells those whose rows are not in memory when asking again may help: not more often, because
// whoever waits looks at all of its rows again. Owned by the executor's thread.
#pragma once

#include <cstdint>

namespace dt::server {

class TierProgress {
 public:
  // Somebody was told to ask again.
  void Await() { awaited_ = true; }
  // Whoever waits may now be answered.
  void Note() {
    ++count_;
    awaited_ = false;
  }
  uint64_t count() const { return count_; }
  bool awaited() const { return awaited_; }

 private:
  uint64_t count_ = 0;
  bool awaited_ = false;
};

}  // namespace dt::server
