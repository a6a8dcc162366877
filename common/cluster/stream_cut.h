// Messages of a stream, such as a Kafka topic: some of each partition, one after the other.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "common/base/fields.h"

namespace dt {

// The messages that a partition has.
struct PartitionRange {
  uint64_t first = 0, end = 0;  // Offsets.
  DT_FIELDS(first, end)
  friend bool operator==(const PartitionRange&, const PartitionRange&) = default;
};

struct StreamCut {
  std::vector<uint64_t> first;  // The offset of the first message, by partition.
  std::vector<uint64_t> count;  // How many, by partition.
  DT_FIELDS(first, count)
  friend bool operator==(const StreamCut&, const StreamCut&) = default;

  bool IsSound() const { return first.size() == count.size(); }
  bool empty() const { return first.empty(); }  // It is of no stream.
  uint64_t messages() const { return std::accumulate(count.begin(), count.end(), uint64_t{0}); }
  // The offsets behind it.
  std::vector<uint64_t> End() const {
    std::vector<uint64_t> end = first;
    for (size_t p = 0; p < end.size(); ++p) end[p] += count[p];
    return end;
  }
};

}  // namespace dt
