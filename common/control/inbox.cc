#include "common/control/inbox.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt {
namespace {

bool IsOrder(const ControlMessage& message) {
  return std::holds_alternative<OrderMessage>(message);
}

}  // namespace

ControlMessage Inbox::Take() {
  DT_CHECK(!messages_.empty());
  ControlMessage message = std::move(messages_.front());
  messages_.pop_front();
  if (const auto* order = std::get_if<OrderMessage>(&message)) last_taken_ = order->number;
  return message;
}

void Inbox::OnNewView() { std::erase_if(messages_, IsOrder); }

void Inbox::DropFirstOrders() {
  messages_.erase(messages_.begin(), std::ranges::find_if_not(messages_, IsOrder));
}

RecalledMessage Inbox::OnRecall(const RecallMessage& recall) {
  const uint64_t first = std::max(recall.from, last_taken_ + 1);
  // An order that a change of the workers interrupted comes again. It stays, as it has begun.
  std::erase_if(messages_, [&](const ControlMessage& message) {
    const auto* const order = std::get_if<OrderMessage>(&message);
    return order != nullptr && order->number >= first;
  });
  return {recall.from, first};
}

}  // namespace dt
