// The lists of a top_k node, for its specification and its kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "common/graph/graph.h"

namespace dt {

// The lengths that the attribute `lists` gives, or the length of a whole row.
struct TopLists {
  bool given = false;
  std::vector<int64_t> lengths;

  TopLists(const Attrs& attrs, int64_t row) : given(attrs.contains("lists")) {
    lengths = given ? IntsAttr(attrs, "lists") : std::vector<int64_t>{row};
  }
  int64_t size() const {
    int64_t sum = 0;
    for (const int64_t length : lengths) sum += length;
    return sum;
  }
  // Whether these are lists of a row of `row` elements.
  bool Fill(int64_t row) const {
    for (const int64_t length : lengths) {
      if (length < 0 || length > row) return false;
    }
    return size() == row;
  }
};

}  // namespace dt
