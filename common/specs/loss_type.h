// Families of losses, by the key `type` of a loss in the job file.
#pragma once

#include <string_view>

namespace dt {

// The labels are 0 and 1, and the input is a logit.
inline bool IsBinaryLoss(std::string_view type) {
  return type == "binary_cross_entropy" || type == "focal";
}

// The scores of a node's negative items are compared with that of the sample's item.
inline bool HasNegatives(std::string_view type) {
  return type == "bpr" || type == "sampled_softmax";
}

// The samples are pairs of a user and an item, which is compared with negative items: those of a
// node, or the other items of the slice. A label is optional; samples with label 0 do not count.
inline bool IsOfPairs(std::string_view type) {
  return HasNegatives(type) || type == "in_batch_softmax";
}

}  // namespace dt
