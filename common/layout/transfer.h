// A transfer is the list of boxes of a tensor that ranks send each other, so that the tensor gets
// another layout. The layouts may have any matrices and any ranks.
#pragma once

#include <vector>

#include "common/layout/layout.h"

namespace dt {

struct BoxMove {
  uint32_t from = 0, to = 0;  // Ranks; equal if the rank has the box already.
  Box box;
  friend bool operator==(const BoxMove&, const BoxMove&) = default;
};

struct Transfer {
  std::vector<BoxMove> moves;  // By the device of the new layout, then in the order of the tensor.
  // Elements sent and received between ranks, by the rank with the most of them.
  int64_t most = 0;
};

// The boxes of a slice, in the order of the tensor.
std::vector<Box> BoxesOf(const Slice& slice);
int64_t ElementsOf(const Box& box);

// Each box that a rank needs comes from itself if it has it; otherwise from that holder which has
// sent least so far, among these the nearest by number, among these the lowest. The same for the
// same layouts. REQUIRES: neither layout is partial.
Transfer TransferBetween(const Layout& from, const Layout& to, const Shape& shape);

// The ranks of `from` that the device of `to` needs parts of, ascending: those that send to it in
// TransferBetween.
RankList SendersTo(const Layout& from, const Layout& to, const Shape& shape, DeviceIndex device);

}  // namespace dt
