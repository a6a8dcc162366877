// The positions of a tensor's dimensions that a part of it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/layout/layout.h"

namespace dt::test {

using Positions = std::vector<std::vector<int64_t>>;  // By dimension, ascending.

inline std::vector<int64_t> ListOf(const Places& places) {
  std::vector<int64_t> list;
  for (const Range& range : places) {
    for (int64_t p = range.begin; p < range.end; ++p) list.push_back(p);
  }
  return list;
}

inline Positions PositionsIn(const Slice& slice) {
  Positions positions;
  for (const Places& places : slice) positions.push_back(ListOf(places));
  return positions;
}

inline Shape LengthsOf(const Positions& positions) {
  Shape shape;
  for (const std::vector<int64_t>& dimension : positions) shape.push_back(std::ssize(dimension));
  return shape;
}

// Calls f(index in the part, index in the whole) for every element of a part.
template <class F>
void ForEachPosition(const Positions& positions, const Shape& whole, const F& f) {
  for (const std::vector<int64_t>& dimension : positions) {
    if (dimension.empty()) return;
  }
  std::vector<size_t> at(positions.size(), 0);
  for (size_t n = 0;; ++n) {
    int64_t flat = 0;
    for (size_t d = 0; d < positions.size(); ++d) flat = flat * whole[d] + positions[d][at[d]];
    f(n, static_cast<size_t>(flat));
    size_t d = positions.size();
    while (d > 0 && ++at[d - 1] == positions[d - 1].size()) at[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace dt::test
