#include "scheduler/schedule/order_tracker.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::scheduler {
namespace {

// In TrainOrder::slice_owner, for asynchronous workers.
constexpr uint32_t kDone = 0;    // As orders.h says.
constexpr uint32_t kLost = ~0u;  // Its worker is lost. Never sent.

// The worker has reported before, and was then given slices of a lost one.
OrderResult Sum(const OrderResult& first, OrderResult second) {
  const auto* const before = std::get_if<TrainDone>(&first);
  auto* const now = std::get_if<TrainDone>(&second);
  if (before == nullptr || now == nullptr || before->loss_sums.size() != now->loss_sums.size()) {
    return second;
  }
  now->samples += before->samples;
  for (size_t l = 0; l < now->loss_sums.size(); ++l) now->loss_sums[l] += before->loss_sums[l];
  if (now->first_losses.empty()) now->first_losses = before->first_losses;
  now->seconds += before->seconds;
  return second;
}

// Gives each slice of a lost worker to another one; those that have done theirs take part again.
void HandOver(const std::vector<ProcessId>& workers, OrdersOut::Out& out) {
  std::vector<uint32_t>& owners = std::get<TrainOrder>(out.order.what).slice_owner;
  const auto has_done = [&](uint32_t owner) { return !out.missing.contains(ProcessId(owner)); };
  for (uint32_t& owner : owners) {
    if (owner != kLost && has_done(owner)) owner = kDone;
  }
  for (size_t slice = 0; slice < owners.size(); ++slice) {
    if (owners[slice] != kLost) continue;
    const ProcessId next = workers[slice % workers.size()];
    owners[slice] = next.value();
    out.missing.insert(next);
  }
}

}  // namespace

OrderMessage OrderTracker::Issue(Order what, const std::vector<ProcessId>& to) {
  DT_CHECK(!to.empty());
  const uint64_t settled =
      record_.out.empty() ? record_.next_number : record_.out.front().order.number;
  OrdersOut::Out& out = record_.out.emplace_back();
  out.order = {record_.next_number++, std::move(what), settled};
  if (auto* const train = std::get_if<TrainOrder>(&out.order.what)) {
    const auto* const oldest = std::get_if<TrainOrder>(&record_.out.front().order.what);
    train->settled_step = oldest != nullptr ? oldest->first_step : train->first_step;
  }
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
  const auto before = out->outcomes.find(from);
  if (before != out->outcomes.end()) done.result = Sum(before->second, std::move(done.result));
  out->outcomes.insert_or_assign(from, std::move(done.result));
  return OkStatus();
}

void OrderTracker::Remove(ProcessId id) {
  for (OrdersOut::Out& out : record_.out) out.missing.erase(id);
}

std::optional<OrderTracker::Recalled> OrderTracker::RemoveWorker(ProcessId id, bool asynchronous) {
  for (OrdersOut::Out& out : record_.out) {
    auto* const train = std::get_if<TrainOrder>(&out.order.what);
    if (train == nullptr || !asynchronous) {
      out.outcomes.erase(id);
      continue;
    }
    out.begun = true;
    if (!out.missing.contains(id)) continue;
    std::ranges::replace(train->slice_owner, id.value(), kLost);
  }
  Remove(id);
  std::optional<OrdersOut::Recall>& recall = record_.recall;
  if (!recall.has_value() || recall->missing.erase(id) == 0 || !recall->missing.empty()) {
    return std::nullopt;
  }
  return EndRecall();
}

std::vector<std::pair<ProcessId, OrderMessage>> OrderTracker::OnNewWorkers(const NewWorkers& now) {
  std::vector<std::pair<ProcessId, OrderMessage>> again;
  for (OrdersOut::Out& out : record_.out) {
    auto* const train = std::get_if<TrainOrder>(&out.order.what);
    if (train != nullptr && now.asynchronous) {
      HandOver(now.workers, out);
    } else if (train != nullptr) {
      train->slice_owner = now.slice_owner;
      if (now.step < train->end_step) {
        out.missing.insert(now.newcomers.begin(), now.newcomers.end());
      }
    } else {
      std::erase_if(out.outcomes,
                    [&](const auto& outcome) { return !now.servers.contains(outcome.first); });
      out.missing.insert(now.workers.begin(), now.workers.end());
    }
    if (record_.recall.has_value() && out.order.number >= record_.recall->from) continue;
    for (const ProcessId id : now.workers) {
      if (out.missing.contains(id)) again.emplace_back(id, out.order);
    }
  }
  if (record_.recall.has_value()) record_.recall->new_workers = true;
  return again;
}

bool OrderTracker::only_trains() const {
  return !record_.recall.has_value() &&
         std::ranges::all_of(record_.out, [](const OrdersOut::Out& out) {
           return std::holds_alternative<TrainOrder>(out.order.what);
         });
}

std::vector<OrderMessage> OrderTracker::OutTo(ProcessId id) const {
  std::vector<OrderMessage> orders;
  for (const OrdersOut::Out& out : record_.out) {
    if (record_.recall.has_value() && out.order.number >= record_.recall->from) break;
    if (out.missing.contains(id)) orders.push_back(out.order);
  }
  return orders;
}

void OrderTracker::Recall(size_t keep) {
  DT_CHECK(!record_.recall.has_value());
  DT_CHECK(keep < record_.out.size());
  const OrdersOut::Out& first = record_.out[keep];
  OrdersOut::Recall& recall = record_.recall.emplace();
  recall.from = first.order.number;
  recall.missing = first.missing;
  for (const auto& [id, outcome] : first.outcomes) recall.missing.insert(id);
}

std::optional<RecallMessage> OrderTracker::RecallTo(ProcessId id) const {
  if (!record_.recall.has_value() || !record_.recall->missing.contains(id)) return std::nullopt;
  return RecallMessage{record_.recall->from};
}

Result<std::optional<OrderTracker::Recalled>> OrderTracker::OnRecalled(
    ProcessId from, const RecalledMessage& answer) {
  std::optional<OrdersOut::Recall>& recall = record_.recall;
  if (answer.first > record_.next_number) {
    return Internal("it has begun order {}, which was never given", answer.first - 1);
  }
  if (!recall.has_value() || answer.from != recall->from || recall->missing.erase(from) == 0) {
    return std::optional<Recalled>();
  }
  recall->firsts[from] = answer.first;
  if (!recall->missing.empty()) return std::optional<Recalled>();
  return std::optional<Recalled>(EndRecall());
}

// Orders before the highest answer have begun somewhere, so all must do them.
OrderTracker::Recalled OrderTracker::EndRecall() {
  const auto [from, missing, firsts, new_workers] = *std::move(record_.recall);
  record_.recall.reset();
  uint64_t end = 0;
  for (const auto& [id, first] : firsts) end = std::max(end, first);
  for (const OrdersOut::Out& out : record_.out) {
    if (out.begun) end = std::max(end, out.order.number + 1);
  }
  Recalled recalled;
  for (; !record_.out.empty() && record_.out.back().order.number >= end; record_.out.pop_back()) {
    recalled.cancelled.push_back(std::move(record_.out.back().order));
  }
  std::ranges::reverse(recalled.cancelled);
  for (const OrdersOut::Out& out : record_.out) {
    if (out.order.number < from) continue;
    for (const ProcessId id : out.missing) {
      const auto first = firsts.find(id);
      const bool gave_back = first != firsts.end() && out.order.number >= first->second;
      if (gave_back || new_workers) recalled.again.emplace_back(id, out.order);
    }
  }
  return recalled;
}

std::optional<OrderTracker::Completed> OrderTracker::TakeCompleted() {
  if (record_.out.empty() || !record_.out.front().missing.empty()) return std::nullopt;
  OrdersOut::Out& first = record_.out.front();
  Completed completed{std::move(first.order), std::move(first.outcomes)};
  record_.out.pop_front();
  if (record_.out.empty()) record_.recall.reset();  // All that was recalled had begun.
  return completed;
}

}  // namespace dt::scheduler
