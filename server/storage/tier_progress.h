// Tells requests whose rows are not in memory when to ask again. Not more often than useful,
// because a request then looks at all of its rows again. Owned by the executor's thread.
#pragma once

#include <cstdint>

namespace dt::server {

class TierProgress {
 public:
  // Called when a request was told to ask again.
  void Await() { awaited_ = true; }
  // Called when a waiting request may be answered now.
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
