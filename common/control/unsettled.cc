#include "common/control/unsettled.h"

#include <algorithm>

namespace dt {
namespace {

// Erases the messages of a kind for which `is` is true; returns how many there were.
template <class T, class Predicate>
size_t Erase(std::deque<ControlMessage>& messages, const Predicate& is) {
  return std::erase_if(messages, [&](const ControlMessage& message) {
    const T* const found = std::get_if<T>(&message);
    return found != nullptr && is(*found);
  });
}

constexpr auto kAny = [](const auto&) { return true; };

}  // namespace

void Unsettled::OnSent(ControlMessage& message) {
  if (std::holds_alternative<JoinMessage>(message)) return;
  if (std::holds_alternative<ViewReportMessage>(message)) return;
  if (std::holds_alternative<StreamReportMessage>(message)) return;  // The next one follows soon.
  if (const auto* recalled = std::get_if<RecalledMessage>(&message)) {
    last_order_ = std::min(last_order_, recalled->first - 1);
    return;
  }
  if (std::holds_alternative<RowsWrittenMessage>(message))
    Erase<RowsWrittenMessage>(messages_, kAny);
  if (auto* const request = std::get_if<SplitRequestMessage>(&message)) {
    Erase<SplitRequestMessage>(messages_, kAny);
    request->number = ++last_request_;
  }
  messages_.push_back(message);
}

bool Unsettled::OnReceived(const ControlMessage& message) {
  if (std::holds_alternative<StartMessage>(message)) return !std::exchange(started_, true);
  if (const auto* order = std::get_if<OrderMessage>(&message)) {
    Erase<OrderDoneMessage>(
        messages_, [&](const OrderDoneMessage& done) { return done.order < order->settled; });
    if (order->number <= last_order_) return false;
    last_order_ = order->number;
  } else if (const auto* begins = std::get_if<ViewBeginsMessage>(&message)) {
    if (begins->view <= view_) return false;
    view_ = begins->view;
    // The scheduler has written down what was done before, and sends the other orders again.
    Erase<OrderDoneMessage>(messages_, kAny);
    Erase<KvPutMessage>(messages_, kAny);
    Erase<KvGetMessage>(messages_, kAny);
    last_order_ = 0;
  } else if (const auto* value = std::get_if<KvValueMessage>(&message)) {
    Erase<KvGetMessage>(messages_, [&](const KvGetMessage& get) { return get.key == value->key; });
  } else if (const auto* split = std::get_if<SplitMessage>(&message)) {
    return Erase<SplitRequestMessage>(messages_, [&](const SplitRequestMessage& request) {
             return request.order == split->order && request.number == split->number;
           }) != 0;
  }
  return true;
}

}  // namespace dt
