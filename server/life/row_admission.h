// Decides which push of a key makes its row: pushes to a key without a row are counted in a sketch,
// the n-th one makes the row, and earlier ones are dropped. Owned by the shard's thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "server/life/count_min_sketch.h"
#include "server/life/life_spec.h"

namespace dt::server {

class RowAdmission {
 public:
  RowAdmission(const LifeSpec& spec, uint64_t salt);

  // True if no push is ever dropped.
  bool admits_all() const { return pushes_ <= 1; }
  // Returns whether this push to a key without a row makes the row. A dropped push is counted by
  // the next Settle, so that the keys of one request do not affect one another.
  bool Admit(Key key);
  void Settle();
  // The address that Admit will read, for prefetching.
  const void* CounterOf(Key key) const { return sketch_.AddressOf(key); }

  // Forgets all counts.
  void Reset();

  // The counts, for checkpoints; empty if every push is admitted.
  std::span<const std::byte> sketch() const { return sketch_.bytes(); }
  std::span<std::byte> sketch() { return sketch_.bytes(); }
  // Pushes dropped since the process began.
  uint64_t refused() const { return refused_; }

 private:
  struct Refused {
    Key key;
    uint32_t count;
  };

  const uint32_t pushes_;
  CountMinSketch sketch_;
  std::vector<Refused> pending_;
  uint64_t refused_ = 0;
};

}  // namespace dt::server
