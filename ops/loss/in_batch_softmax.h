// The inputs of an in_batch_softmax node, for its specification and its kernel.
#pragma once

#include <cstddef>

#include "common/graph/graph.h"

namespace dt {

// Positions among the node's inputs, of which the user vectors are at `first`; kNone if absent.
struct InBatchInputs {
  size_t user, item;
  size_t label = kNone, weight = kNone, log_q = kNone, index = kNone;
  size_t end;  // One past the last input.
  // Ids of a sample in the index, and the item's position among them.
  int64_t length = 0, position = 0;

  InBatchInputs(const Attrs& attrs, size_t first) : user(first), item(first + 1), end(first + 2) {
    if (BoolAttr(attrs, "label", false)) label = end++;
    if (BoolAttr(attrs, "weight", false)) weight = end++;
    if (BoolAttr(attrs, "log_q", false)) log_q = end++;
    length = IntAttr(attrs, "length", 0);
    position = IntAttr(attrs, "position", 0);
    if (length != 0) index = end++;
  }
};

}  // namespace dt
