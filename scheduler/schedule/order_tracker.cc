#include "scheduler/schedule/order_tracker.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::scheduler {

OrderMessage OrderTracker::Issue(Order what, const std::vector<ProcessId>& to) {
  DT_CHECK(!to.empty());
  const uint64_t settled =
      record_.out.empty() ? record_.next_number : record_.out.front().order.number;
  OrdersOut::Out& out = record_.out.emplace_back();
  out.order = {record_.next_number++, std::move(what), settled};
  out.missing.insert(to.begin(), to.end());
  return out.order;
}

Status OrderTracker::OnDone(ProcessId from, OrderDoneMessage done) {
  if (done.order >= record_.next_number) {
    return Internal("it reports order {}, which was never given", done.order);
  }
  const auto out = std::ranges::find_if(
      record_.out, [&](const OrdersOut::Out& o) { return o.order.number == done.order; });
  if (out == record_.out.end() || !out->missing.contains(from)) return OkStatus();
  if (out->order.what.index() != done.result.index()) {
    return Internal("its report of order {} is one of another kind of order", done.order);
  }
  out->missing.erase(from);
  out->outcomes.emplace(from, std::move(done.result));
  return OkStatus();
}

void OrderTracker::Remove(ProcessId id) {
  for (OrdersOut::Out& out : record_.out) out.missing.erase(id);
}

std::vector<OrderMessage> OrderTracker::OutTo(ProcessId id) const {
  std::vector<OrderMessage> orders;
  for (const OrdersOut::Out& out : record_.out) {
    if (out.missing.contains(id)) orders.push_back(out.order);
  }
  return orders;
}

std::optional<OrderTracker::Completed> OrderTracker::TakeCompleted() {
  if (record_.out.empty() || !record_.out.front().missing.empty()) return std::nullopt;
  OrdersOut::Out& first = record_.out.front();
  Completed completed{std::move(first.order), std::move(first.outcomes)};
  record_.out.pop_front();
  return completed;
}

}  // namespace dt::scheduler
