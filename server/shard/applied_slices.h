// The slices of steps that a shard of asynchronous training has applied, so that each counts once,
// whoever pushes it. Steps that are complete everywhere take no memory.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/ids.h"
#include "server/shard/shard_clock.h"

namespace dt::server {

class AppliedSlices {
 public:
  bool Has(Step step, SliceIndex slice) const;
  void Add(Step step, SliceIndex slice);
  // Every step before this one is complete.
  Step settled() const { return settled_; }
  void Settle(Step step);

  // All that is applied from settled() on.
  std::vector<ClockState::Applied> Ascending() const;
  void Reset(const ClockState& state);

 private:
  static constexpr uint32_t kWordBits = 64;
  Step settled_ = 0;
  // A bit for each slice, by step and word.
  absl::flat_hash_map<std::pair<Step, uint32_t>, uint64_t> words_;
};

}  // namespace dt::server
