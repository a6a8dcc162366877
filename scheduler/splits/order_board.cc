#include "scheduler/splits/order_board.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::scheduler {

OrderMessage OrderBoard::Issue(What what, const std::vector<ProcessId>& to) {
  DT_CHECK(!to.empty());
  Out& out = out_.emplace_back();
  out.order = {next_number_++, std::move(what)};
  out.missing.insert(to.begin(), to.end());
  return out.order;
}

Status OrderBoard::OnDone(ProcessId from, OrderDoneMessage done) {
  const auto out = std::find_if(out_.begin(), out_.end(),
                                [&](const Out& o) { return o.order.number == done.order; });
  if (out == out_.end() || out->missing.erase(from) == 0) {
    return Internal("it reports order {}, which it does not have", done.order);
  }
  if (out->order.what.index() != done.result.index()) {
    return Internal("its report of order {} is one of another kind of order", done.order);
  }
  out->outcomes.emplace(from, std::move(done.result));
  return OkStatus();
}

std::vector<OrderMessage> OrderBoard::OutTo(ProcessId id) const {
  std::vector<OrderMessage> orders;
  for (const Out& out : out_) {
    if (out.missing.contains(id)) orders.push_back(out.order);
  }
  return orders;
}

std::optional<OrderBoard::Completed> OrderBoard::TakeCompleted() {
  if (out_.empty() || !out_.front().missing.empty()) return std::nullopt;
  Completed completed{std::move(out_.front().order), std::move(out_.front().outcomes)};
  out_.pop_front();
  return completed;
}

}  // namespace dt::scheduler
