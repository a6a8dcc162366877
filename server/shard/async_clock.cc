#include "server/shard/async_clock.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::server {
namespace {

bool Whole(const Contributions& push) {
  return std::ranges::all_of(push, [](const auto& part) { return part.has_value(); });
}

}  // namespace

AsyncClock::AsyncClock(const AsyncOptions& options, Step first) : staleness_(options.staleness) {
  DT_CHECK(!options.workers.empty());
  for (const ProcessId id : options.workers) workers_[id] = {};
  Reset(first);
}

void AsyncClock::Reset(Step first) {
  for (auto& [id, worker] : workers_) worker = {first, first, {}};
  held_bytes_ = 0;
}

Status AsyncClock::Take(Contribution part, const Apply& apply) {
  const auto sender = workers_.find(part.worker);
  if (sender == workers_.end()) {
    return Malformed("push of process {}, which is no worker of this job", part.worker.value());
  }
  Worker& worker = sender->second;
  if (part.first_step < worker.order) return OkStatus();
  if (part.first_step > worker.order) {
    for (const auto& [step, push] : worker.held) Drop(push);
    worker = {part.first_step, part.first_step, {}};
  }
  const Step step = part.step;
  if (step < worker.next) return OkStatus();
  const bool turn = step == worker.next;
  if (step > worker.next + kAhead) {
    return Busy("push of step {}: the one of step {} is not there yet", step, worker.next);
  }
  DT_TRY_STATUS(Place(worker, std::move(part)));
  if (turn) {
    ApplyReady(worker, apply);
    if (worker.next > step || !Whole(worker.held[step])) return OkStatus();
    return Busy("push of step {} waits for rows on disk", step);
  }
  return Busy("push of step {} is held until the one of step {} is there", step, worker.next);
}

Status AsyncClock::Place(Worker& worker, Contribution part) {
  DT_CHECK(part.part < part.parts);
  Contributions& push = worker.held[part.step];
  if (push.empty()) push.resize(part.parts);
  if (push.size() != part.parts) {
    return Malformed("push of step {}: {} parts now, {} before", part.step, part.parts,
                     push.size());
  }
  std::optional<Contribution>& place = push[part.part];
  if (place.has_value()) return OkStatus();
  held_bytes_ += BytesOf(part);
  place = std::move(part);
  return OkStatus();
}

void AsyncClock::ApplyReady(Worker& worker, const Apply& apply) {
  while (!worker.held.empty()) {
    const auto first = worker.held.begin();
    if (first->first != worker.next || !Whole(first->second)) return;
    if (!apply(first->second)) return;
    Drop(first->second);
    worker.held.erase(first);
    ++worker.next;
  }
}

void AsyncClock::Resume(const Apply& apply) {
  for (auto& [id, worker] : workers_) ApplyReady(worker, apply);
}

void AsyncClock::Drop(const Contributions& push) {
  for (const auto& part : push) {
    if (part.has_value()) held_bytes_ -= BytesOf(*part);
  }
}

bool AsyncClock::MayPull(Step step) const {
  if (staleness_ == kUnboundedStaleness || step <= staleness_) return true;
  return least() >= step - staleness_;
}

Step AsyncClock::least() const {
  return std::ranges::min_element(workers_, {}, [](const auto& w) { return w.second.next; })
      ->second.next;
}

std::string AsyncClock::SlowestText() const {
  const auto slowest =
      std::ranges::min_element(workers_, {}, [](const auto& w) { return w.second.next; });
  return fmt::format("worker {} has not pushed step {} yet", slowest->first.value(),
                     slowest->second.next);
}

}  // namespace dt::server
