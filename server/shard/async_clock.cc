// The clock of asynchronous workers (train.staleness above 0): each push is applied when it
// arrives, the pushes of one worker in the order of its steps.
//
//   next(w) = n             every push of worker w before step n is applied
//   a piece of push n       ──▶ held; the last one applies the push, and next(w) = n + 1
//   push n + 1 … n + kAhead ──▶ parked: its sender is told to send it again (Busy); it is taken
//                               when its turn comes, if it has not come again before
//   push < n                ──▶ acknowledged and dropped: it has been applied
//   push of a later order   ──▶ if it is the order's first, next(w) = its step: the last order is
//                               all applied; otherwise Busy
//   pull t                  ──▶ waits until next(w) ≥ t - staleness for every worker
//
// A push is applied after all earlier pushes of its sender, so the state is small and needs no
// history: a worker may always send again. What is parked is no part of the state: it makes no
// record.
#include <algorithm>
#include <map>
#include <optional>

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
      if (piece.step != piece.first_step) return TooEarly(piece.step, piece.first_step);
      // The order begins with the record of its first piece.
      if (!MayTakeFirst(piece, updater)) return WaitsForRows(piece.step);
      held_bytes_ -= HeldBytesOf(worker);
      worker = {.order = piece.first_step, .next = piece.first_step};
    }
    const Step step = piece.step;
    if (step < worker.next) return OkStatus();
    if (step > worker.next + kAhead) return TooEarly(step, worker.next);
    const uint32_t number = piece.piece;
    const uint64_t bytes = BytesOf(piece);
    if (step == worker.next) DT_TRY_STATUS(CheckPieces(piece, worker.held));
    if (step == worker.next && Has(worker.held, number)) return OkStatus();
    DT_TRY(const bool added, AddPiece(std::move(piece), worker.parked[step]));
    if (added) held_bytes_ += bytes;
    TakeParked(worker, updater);
    if (step < worker.next) return OkStatus();
    if (step > worker.next) {
      return Busy("push of step {} is parked until the one of step {} is there", step, worker.next);
    }
    return Has(worker.held, number) ? OkStatus() : WaitsForRows(step);
  }

  void Advance(Step, ShardUpdater& updater) override {
    for (auto& [id, worker] : workers_) TakeParked(worker, updater);
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

  Status Reset(const ClockState& state) override {
    for (auto& [id, worker] : workers_) worker = {.order = state.now, .next = state.now};
    held_bytes_ = 0;
    for (const ClockState::Turn& turn : state.turns) {
      const auto at = workers_.find(turn.worker);
      if (at == workers_.end()) return Malformed("worker {}", turn.worker.value());
      at->second = {.order = turn.order, .next = turn.next};
    }
    for (const Contribution& each : state.held) {
      const auto at = workers_.find(each.worker);
      if (at == workers_.end() || each.step != at->second.next) {
        return Malformed("a held push of step {} by worker {}", each.step, each.worker.value());
      }
      DT_TRY(const bool added, AddPiece(each, at->second.held));
      if (added) held_bytes_ += BytesOf(each);
    }
    return OkStatus();
  }
  ClockState state() const override {
    ClockState state;
    for (const auto& [id, worker] : workers_) {
      state.turns.push_back({id, worker.order, worker.next});
      AppendPieces(worker.held, state.held);
    }
    return state;
  }

  uint64_t held_bytes() const override { return held_bytes_; }

 private:
  struct Worker {
    Step order = 0, next = 0;
    Contributions held = {};                    // Pieces of the push of step `next`.
    std::map<Step, Contributions> parked = {};  // Pushes of `next` and later steps.
  };

  static Status TooEarly(Step step, Step next) {
    return Busy("push of step {}: the one of step {} is not there yet", step, next);
  }
  static Status WaitsForRows(Step step) {
    return Busy("push of step {} waits for rows on disk", step);
  }

  static uint64_t HeldBytesOf(const Worker& worker) {
    uint64_t bytes = BytesOf(worker.held);
    for (const auto& [step, push] : worker.parked) bytes += BytesOf(push);
    return bytes;
  }

  // False if the piece is a whole push, whose rows are not in memory yet.
  static bool MayTakeFirst(const Contribution& piece, ShardUpdater& updater) {
    if (piece.pieces > 1) return true;
    const Contributions push{piece};
    return updater.Prepare({&push, 1});
  }

  const std::pair<const ProcessId, Worker>& Slowest() const {
    return *std::ranges::min_element(workers_, {}, [](const auto& w) { return w.second.next; });
  }

  // Takes the parked pieces whose turn has come.
  void TakeParked(Worker& worker, ShardUpdater& updater) {
    while (!worker.parked.empty() && worker.parked.begin()->first == worker.next) {
      Contributions& pieces = worker.parked.begin()->second;
      const Step step = worker.next;
      for (std::optional<Contribution>& piece : pieces) {
        if (piece.has_value() && !TakeInTurn(worker, piece, updater)) return;
      }
      worker.parked.erase(step);
      if (worker.next == step) return;
    }
  }

  // Takes a piece of the push of step `next`. False: nothing has happened, because the push would
  // be whole and its rows are not in memory yet.
  bool TakeInTurn(Worker& worker, std::optional<Contribution>& piece, ShardUpdater& updater) {
    const uint32_t number = piece->piece;
    if (worker.held.empty()) worker.held.resize(piece->pieces);
    std::optional<Contribution>& place = worker.held[number];
    place.swap(piece);
    const bool whole = IsWhole(worker.held);
    const std::span<const Contributions> push(&worker.held, 1);
    if (whole && !updater.Prepare(push)) {
      place.swap(piece);
      return false;
    }
    updater.RecordContribution(*place);
    if (!whole) return true;
    updater.Update({.step = worker.next, .lr_scale = worker.held[0]->lr_scale}, push);
    updater.MoveTime(now());
    held_bytes_ -= BytesOf(worker.held);
    worker.held.clear();
    ++worker.next;
    return true;
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
