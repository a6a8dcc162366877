// Which inputs a node in_batch_softmax has: what its specification and its kernel share.
#pragma once

#include <cstddef>

#include "common/graph/graph.h"

namespace dt {

// Positions among the node's inputs, the user vectors at `first`; kNone where there is none.
struct InBatchInputs {
  size_t user, item;
  size_t label = kNone, weight = kNone, log_q = kNone, index = kNone;
  size_t end;                        // Behind the last one.
  int64_t length = 0, position = 0;  // Ids of a sample in the index, and the item's among them.

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
