// The inputs of an in_batch_softmax node, for its specification and its kernel.
#pragma once

#include <cstddef>

#include "common/graph/graph.h"

namespace dt {

// Positions among the node's inputs, of which the user vectors are at `first`; kNone if absent.
struct InBatchInputs {
  size_t user, item;
  size_t label = kNone, weight = kNone, log_q = kNone, key = kNone;
  size_t end;  // One past the last input.

  InBatchInputs(const Attrs& attrs, size_t first) : user(first), item(first + 1), end(first + 2) {
    if (BoolAttr(attrs, "label", false)) label = end++;
    if (BoolAttr(attrs, "weight", false)) weight = end++;
    if (BoolAttr(attrs, "log_q", false)) log_q = end++;
    if (BoolAttr(attrs, "key", false)) key = end++;
  }
};

}  // namespace dt
