// When the rows of one table in one shard come to be, and when they are gone.
//
//   never pushed ──n-th push──▶ a row ──no push for so long──▶ gone: as if never pushed
//
// Admission: a push to a key without a row is counted; the n-th makes the row, those before are
// dropped. Expiry is a statement, not an act: a row whose last push lies before expire_before()
// *is* absent, wherever its bytes still are. expire_before() moves at step boundaries only and
// never down, not even where a job is resumed under another rule, so that all members of a chain,
// every pull, checkpoint and checksum agree.
//
// Hours are hours of running: while a job lies still nothing grows old. Owned by the shard's
// thread; no clock of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "server/life/count_min_sketch.h"

namespace dt::server {

struct LifeSpec {
  uint32_t admission_pushes = 1;  // 1: the first push makes the row.
  uint64_t sketch_bytes = 0;      // Of one shard.
  Step expiry_steps = 0;          // 0: never.
  Duration expiry_time{};         // Zero: never. Not both.
  bool freeze = false;            // Pushes change nothing; nothing expires.
};

class RowLife {
 public:
  RowLife(const LifeSpec& spec, uint64_t salt);

  // ---- admission
  bool admits_all() const { return spec_.admission_pushes <= 1; }
  // Of a key that has no row: whether this push makes one. If not, the push counts from Settle on:
  // keys of one push do not see one another.
  bool Admit(Key key);
  void Settle();
  const void* CounterOf(Key key) const { return sketch_.PlaceOf(key); }

  // ---- expiry
  bool IsGone(Step last_push) const { return last_push < expire_before_; }
  Step expire_before() const { return expire_before_; }  // 0: no row can be gone.
  // The shard runs for so long already, since the last call.
  void PassTime(Duration elapsed) { running_ += elapsed; }
  // At a step boundary: every step before `clock` is applied.
  void MoveClock(Step clock);

  // ---- the shard's state
  // As of a shard that was never pushed to.
  void Reset(Step clock);
  // For checkpoints; empty where nothing is to be kept.
  std::string State() const;
  // What State gave; what the rules of now do not need is passed over. False: the sketch begins
  // anew, because that of the state has another size. Malformed: no such state.
  Result<bool> Restore(std::string_view state);
  uint64_t bytes() const { return sketch_.bytes().size(); }

  // ---- since the process began
  void CountGone(uint64_t rows) { gone_ += rows; }
  uint64_t refused() const { return refused_; }  // Pushes dropped by admission.
  uint64_t gone() const { return gone_; }        // Rows that expired and were noticed.

  const LifeSpec& spec() const { return spec_; }

 private:
  struct Mark {
    uint64_t running_ns = 0;
    Step clock = 0;
  };
  struct Refused {
    Key key;
    uint32_t count;
  };

  const LifeSpec spec_;
  CountMinSketch sketch_;
  std::vector<Refused> pending_;

  Step expire_before_ = 0;
  Duration running_{};
  std::deque<Mark> marks_;  // Ascending; the shard's clock at times within expiry_time.

  uint64_t refused_ = 0, gone_ = 0;
};

}  // namespace dt::server
