// The requests of a process for parts of orders, one at a time, and the answers that have come.
// When the workers change, a process may ask for parts of another order while an answer is on its
// way.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "common/control/messages.h"

namespace dt {

class SplitBook {
 public:
  // The answer for this order, once.
  std::optional<SplitMessage> Take(uint64_t order) {
    const auto answer = answers_.extract(order);
    return answer ? std::optional(answer.mapped()) : std::nullopt;
  }
  // Whether to send a request: none is out.
  bool Ask() { return !std::exchange(asked_, true); }
  void OnAnswer(const SplitMessage& answer) {
    asked_ = false;
    answers_[answer.order] = answer;
  }
  // The workers change: an order that had no part left may have some again.
  void OnNewView() {
    std::erase_if(answers_, [](const auto& each) { return each.second.begin == each.second.end; });
  }

 private:
  bool asked_ = false;
  std::map<uint64_t, SplitMessage> answers_;  // By order.
};

}  // namespace dt
