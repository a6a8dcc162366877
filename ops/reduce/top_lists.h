// The lists of a top_k node, for its specification and its kernels.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "common/graph/graph.h"

namespace dt {

// The lengths that the attribute `lists` gives, or the length of a whole row. Refers to the
// attributes, and copies nothing, since kernels make one in each step.
class TopLists {
 public:
  TopLists(const Attrs& attrs, int64_t row) : row_(row) {
    const auto lists = attrs.find("lists");
    if (lists != attrs.end()) lists_ = std::get_if<std::vector<int64_t>>(&lists->second);
  }
  bool given() const { return lists_ != nullptr; }
  std::span<const int64_t> lengths() const {
    return given() ? std::span(*lists_) : std::span(&row_, 1);
  }
  int64_t size() const {
    int64_t sum = 0;
    for (const int64_t length : lengths()) sum += length;
    return sum;
  }
  // Whether these are lists of a row of `row` elements.
  bool Fill(int64_t row) const {
    for (const int64_t length : lengths()) {
      if (length < 0 || length > row) return false;
    }
    return size() == row;
  }

 private:
  const std::vector<int64_t>* lists_ = nullptr;
  int64_t row_;
};

}  // namespace dt
