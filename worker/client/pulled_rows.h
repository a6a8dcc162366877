// The rows of a pull.
#pragma once

#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/net/frame.h"

namespace dt::worker {

// For each table of the graph: f32 [its distinct keys, dim], in row order. Reused between pulls.
class PulledRows {
 public:
  std::span<const float> table(size_t t) const { return views_[t]; }
  // The least clock of the answers: see DataReply.
  Step clock() const { return clock_; }

 private:
  friend class RequestBook;
  std::vector<std::span<const float>> views_;
  std::vector<std::vector<float>> copies_;  // Rows put together from several answers.
  Frame frame_;                             // The only answer, if no rows had to be put together.
  Step clock_ = 0;
};

}  // namespace dt::worker
