// Ids are types: a shard is never mistaken for a node. `value()` is the only way out.
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
using Key = uint64_t;                           // Of a row; exact end to end.
using ShardId = Id<struct ShardTag, uint32_t>;
using ProcessId =
    Id<struct ProcessTag, uint32_t>;  // Given by the scheduler, never reused in a job.
using Incarnation = Id<struct IncarnationTag, uint64_t>;  // Random per process start.
using Generation =
    Id<struct GenerationTag, uint64_t>;     // Of the job; raised by each return to a checkpoint.
using Term = Id<struct TermTag, uint64_t>;  // Of the scheduler; raised by each start of it.
using MapVersion = Id<struct MapVersionTag, uint64_t>;  // Of the shard map; only grows.
using ViewNumber = Id<struct ViewTag, uint64_t>;        // Of the set of workers; only grows.
using Step = uint64_t;                                  // One global mini-batch, counted from 0.
using SliceIndex = uint32_t;                            // 0..train.slices-1.
// Of train.staleness: a worker never waits for another one.
inline constexpr Step kUnboundedStaleness = ~Step{0};

}  // namespace dt
