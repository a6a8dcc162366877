// The clock of asynchronous workers (train.staleness above 0): each push is applied when it
// arrives, the pushes of one worker in the order of its steps.
//
//   next(w) = n            every push of worker w before step n is applied
//   push n, with all its pieces ──▶ applied, next(w) = n + 1; then the held push n + 1, if whole, …
//   push n + 1 … n + kAhead ──▶ held; its sender is told to send it again (Busy)
//   push < n               ──▶ acknowledged and dropped: it has been applied
//   push of a later order  ──▶ next(w) = the order's first step: the last order is all applied
//   pull t                 ──▶ waits until next(w) ≥ t - staleness for every worker
//
// A push is applied after all earlier pushes of its sender, so the state is small and needs no
// history: a worker may always send again.
#include <algorithm>
#include <map>

#include "common/base/check.h"
#include "server/shard/shard_clock.h"

namespace dt::server {
namespace {

constexpr Step kAhead = 16;

class AsyncClock : public ShardClock {
 public:
  explicit AsyncClock(const AsyncOptions& options) : staleness_(options.staleness) {
    DT_CHECK(!options.workers.empty());
    for (const ProcessId id : options.workers) workers_[id] = {};
  }

  Step now() const override { return Slowest().second.next; }

  Status Take(Contribution piece, ShardUpdater& updater) override {
    const auto sender = workers_.find(piece.worker);
    if (sender == workers_.end()) {
      return Malformed("push of process {}, which is no worker of this job", piece.worker.value());
    }
    Worker& worker = sender->second;
    if (piece.first_step < worker.order) return OkStatus();
    if (piece.first_step > worker.order) {
      for (const auto& [step, push] : worker.held) held_bytes_ -= BytesOf(push);
      worker = {piece.first_step, piece.first_step, {}};
    }
    const Step step = piece.step;
    if (step < worker.next) return OkStatus();
    const bool turn = step == worker.next;
    if (step > worker.next + kAhead) {
      return Busy("push of step {}: the one of step {} is not there yet", step, worker.next);
    }
    const uint64_t bytes = BytesOf(piece);
    DT_TRY(const bool added, AddPiece(std::move(piece), worker.held[step]));
    if (added) held_bytes_ += bytes;
    if (!turn) {
      return Busy("push of step {} is held until the one of step {} is there", step, worker.next);
    }
    ApplyReady(worker, updater);
    if (worker.next > step || !IsWhole(worker.held[step])) return OkStatus();
    return Busy("push of step {} waits for rows on disk", step);
  }

  void Advance(Step, ShardUpdater& updater) override {
    for (auto& [id, worker] : workers_) ApplyReady(worker, updater);
  }

  bool CanReach(Step) const override { return true; }

  Pullable MayPull(PullMode mode, Step step) const override {
    const bool free = mode == PullMode::kEvaluate || staleness_ == kUnboundedStaleness ||
                      step <= staleness_ || now() >= step - staleness_;
    return free ? Pullable::kYes : Pullable::kNotYet;
  }

  bool settled() const override { return held_bytes_ == 0; }

  std::string Missing() const override {
    const auto& [id, worker] = Slowest();
    return fmt::format("the push of step {} by worker {}", worker.next, id.value());
  }

  void Reset(Step step) override {
    for (auto& [id, worker] : workers_) worker = {step, step, {}};
    held_bytes_ = 0;
  }

  uint64_t held_bytes() const override { return held_bytes_; }

 private:
  struct Worker {
    Step order = 0, next = 0;
    std::map<Step, Contributions> held;
  };

  const std::pair<const ProcessId, Worker>& Slowest() const {
    return *std::ranges::min_element(workers_, {}, [](const auto& w) { return w.second.next; });
  }

  void ApplyReady(Worker& worker, ShardUpdater& updater) {
    while (!worker.held.empty()) {
      const auto first = worker.held.begin();
      const Contributions& push = first->second;
      if (first->first != worker.next || !IsWhole(push)) return;
      const UpdateInfo info{.step = worker.next, .lr_scale = push[0]->lr_scale};
      if (!updater.Update(info, {&push, 1})) return;
      updater.MoveTime(now());
      held_bytes_ -= BytesOf(push);
      worker.held.erase(first);
      ++worker.next;
    }
  }

  const Step staleness_;
  std::map<ProcessId, Worker> workers_;
  uint64_t held_bytes_ = 0;
};

}  // namespace

std::unique_ptr<ShardClock> MakeAsyncClock(const AsyncOptions& options) {
  return std::make_unique<AsyncClock>(options);
}

}  // namespace dt::server
