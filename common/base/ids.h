// Each kind of id is a type of its own, so that a shard cannot be mistaken for a process. Only
// `value()` gives the number.
#pragma once

#include <compare>
#include <cstdint>
#include <utility>

namespace dt {

template <class Tag, class Rep>
class Id {
 public:
  using rep = Rep;
  constexpr Id() = default;
  constexpr explicit Id(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(Id, Id) = default;
  template <class H>
  friend H AbslHashValue(H h, Id id) {
    return H::combine(std::move(h), id.value_);
  }

 private:
  Rep value_{};
};

using TableId = Id<struct TableTag, uint64_t>;  // XXH3-64 of the table's name.
using Key = uint64_t;                           // A row's key; no step of the way changes it.
using ShardId = Id<struct ShardTag, uint32_t>;
// Given by the scheduler, never reused in a job.
using ProcessId = Id<struct ProcessTag, uint32_t>;
// A random number for each start of a process.
using Incarnation = Id<struct IncarnationTag, uint64_t>;
// The job's generation; each return to a checkpoint raises it.
using Generation = Id<struct GenerationTag, uint64_t>;
// The scheduler's term; each start of the scheduler raises it.
using Term = Id<struct TermTag, uint64_t>;
using MapVersion = Id<struct MapVersionTag, uint64_t>;  // Version of the shard map; only grows.
using ViewNumber = Id<struct ViewTag, uint64_t>;        // Number of the set of workers; only grows.
using Step = uint64_t;                                  // Number of a global mini-batch, from 0.
using SliceIndex = uint32_t;                            // 0 to train.slices - 1.
// Value of train.staleness with which no worker ever waits for another.
inline constexpr Step kUnboundedStaleness = ~Step{0};

}  // namespace dt
