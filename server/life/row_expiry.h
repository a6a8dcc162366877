// Decides when the rows of one table in one shard expire. Expiry does not wait for deletion: a row
// whose last push is earlier than expire_before() counts as absent, even while its bytes still
// exist. expire_before() moves at step boundaries only and never decreases, not even if a job is
// resumed under another rule, so that all members of a chain, every pull, checkpoint and checksum
// agree.
//
// Only running time counts: while a job is stopped, rows do not age. Owned by the shard's thread;
// it has no clock of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "common/base/clock.h"
#include "server/life/life_spec.h"

namespace dt::server {

class RowExpiry {
 public:
  // The shard's clock after it had run for `running_ns`.
  struct Mark {
    uint64_t running_ns = 0;
    Step clock = 0;
  };

  explicit RowExpiry(const LifeSpec& spec) : spec_(spec) {}

  bool IsExpired(Step last_push) const { return last_push < expire_before_; }
  Step expire_before() const { return expire_before_; }  // 0: no row has expired.
  // Adds the time for which the shard has run since the last call.
  void PassTime(Duration elapsed) { running_ += elapsed; }
  // Called at a step boundary: every step before `clock` is applied.
  void MoveClock(Step clock);

  // Resets to the state of a shard that was never pushed to.
  void Reset(Step clock);
  // Restores the state from a checkpoint; `running` and `marks` are ignored if rows do not expire
  // by time.
  void Restore(Step expire_before, Duration running, std::span<const Mark> marks);

  bool timed() const { return spec_.expiry_time > Duration::zero(); }
  Duration running() const { return running_; }
  const std::deque<Mark>& marks() const { return marks_; }
  const LifeSpec& spec() const { return spec_; }

  // Expired rows that were noticed since the process began.
  void CountExpired(uint64_t rows) { expired_ += rows; }
  uint64_t expired() const { return expired_; }

 private:
  const LifeSpec spec_;
  Step expire_before_ = 0;
  Duration running_{};
  std::deque<Mark> marks_;  // Ascending; only marks within expiry_time.
  uint64_t expired_ = 0;
};

}  // namespace dt::server
