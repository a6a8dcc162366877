// The clock of asynchronous workers (train.staleness above 0): each push is applied when it
// arrives, the pushes of one worker in the order of their numbers.
//
//   next(w) = n             every push of worker w before number n of its order is applied
//   a piece of push n       ──▶ held; the last one applies the push, and next(w) = n + 1
//   push n + 1 … n + kAhead ──▶ parked: its sender is told to send it again (Busy); it is taken
//                               when its turn comes, if it has not come again before
//   push < n                ──▶ acknowledged and dropped: it has been applied
//   push of a later order or view ──▶ if it is the first there, next(w) = 0: the last order is all
//                               applied, or begins again; otherwise Busy
//   pull t                  ──▶ waits until clock(w) ≥ t - staleness for every worker
//
// A push is a slice of a step, which is applied once, whoever pushes it: what a lost worker was to
// push is computed again by another. In the next view each worker begins its order again, with the
// slices whose push it has not heard to be applied. The set of workers changes by a record. A
// worker's clock never falls; one that joins has the clock of the slowest.
//
// A push that is parked is no part of the state: it makes no record.
#include <algorithm>
#include <map>
#include <optional>

#include "common/base/check.h"
#include "server/shard/applied_slices.h"
#include "server/shard/shard_clock.h"

namespace dt::server {
namespace {

constexpr uint64_t kAhead = 16;

class AsyncClock : public ShardClock {
 public:
  AsyncClock(Step staleness, const ClockState& start) : staleness_(staleness) {
    DT_CHECK(Reset(start).ok() && !workers_.empty());
  }

  Step now() const override { return Slowest().second.clock; }

  Status Take(Contribution piece, ShardUpdater& updater) override {
    const SenderTurn& turn = piece.turn;
    const auto sender = workers_.find(turn.worker);
    if (sender == workers_.end()) {
      return Stale("push of process {}, which is no worker of this job", turn.worker.value());
    }
    Worker& worker = sender->second;
    const auto part = std::pair(turn.view, turn.order), at = std::pair(worker.view, worker.order);
    if (part < at) return OkStatus();
    if (part > at) {
      if (turn.number != 0) return TooEarly(turn.number, 0);
      // The order begins with the record of its first piece.
      if (!MayTakeFirst(piece, updater)) return WaitsForRows(piece.step);
      held_bytes_ -= HeldBytesOf(worker);
      worker = {.view = turn.view, .order = turn.order, .clock = worker.clock};
    }
    const uint64_t push = turn.number;
    if (push < worker.next) return OkStatus();
    if (push > worker.next + kAhead) return TooEarly(push, worker.next);
    const Step step = piece.step;
    const uint32_t number = piece.piece;
    const uint64_t bytes = BytesOf(piece);
    if (push == worker.next) DT_TRY_STATUS(CheckPieces(piece, worker.held));
    if (push == worker.next && Has(worker.held, number)) return OkStatus();
    DT_TRY(const bool added, AddPiece(std::move(piece), worker.parked[push]));
    if (added) held_bytes_ += bytes;
    TakeParked(worker, updater);
    if (push < worker.next) return OkStatus();
    if (push > worker.next) {
      return Busy("push {} is parked until push {} is there", push, worker.next);
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
    return fmt::format("the push of step {} by worker {}", worker.clock, id.value());
  }

  Status Reset(const ClockState& state) override {
    workers_.clear();
    held_bytes_ = 0;
    view_ = state.view;
    applied_.Reset(state);
    for (const ClockState::Turn& turn : state.turns) {
      workers_[turn.worker] = {
          .view = turn.view, .order = turn.order, .next = turn.next, .clock = turn.clock};
    }
    if (workers_.empty()) return Malformed("a clock without workers");
    for (const Contribution& each : state.held) {
      const auto at = workers_.find(each.turn.worker);
      if (at == workers_.end() || each.turn.number != at->second.next) {
        return Malformed("a held push of step {} by worker {}", each.step,
                         each.turn.worker.value());
      }
      DT_TRY(const bool added, AddPiece(each, at->second.held));
      if (added) held_bytes_ += BytesOf(each);
    }
    return OkStatus();
  }
  ClockState state() const override {
    ClockState state{.view = view_, .settled = applied_.settled(), .applied = applied_.Ascending()};
    for (const auto& [id, worker] : workers_) {
      state.turns.push_back({id, worker.view, worker.order, worker.next, worker.clock});
      AppendPieces(worker.held, state.held);
    }
    return state;
  }

  uint64_t held_bytes() const override { return held_bytes_; }

  ViewNumber view() const override { return view_; }

  void SetWorkers(ViewNumber view, std::span<const ProcessId> workers,
                  ShardUpdater& updater) override {
    DT_CHECK(!workers.empty());
    updater.RecordWorkers(view, workers);
    std::map<ProcessId, Worker> next;
    for (const ProcessId id : workers) {
      const auto before = workers_.find(id);
      Worker& worker = next[id];
      worker.clock = now();
      if (before == workers_.end()) continue;
      const Worker& was = before->second;
      worker = {.view = was.view, .order = was.order, .next = was.next, .clock = was.clock};
    }
    workers_ = std::move(next);
    held_bytes_ = 0;
    view_ = view;
    updater.MoveTime(now());
  }

  // Its record that the workers change comes later, or was made before the records that are here.
  void Know(ProcessId worker) override {
    if (workers_.contains(worker)) return;
    workers_[worker] = {.clock = now()};
    view_ = {};
  }

 private:
  struct Worker {
    ViewNumber view = {};
    Step order = 0;
    uint64_t next = 0;
    Step clock = 0;
    Contributions held = {};                        // Pieces of push `next`.
    std::map<uint64_t, Contributions> parked = {};  // Push `next` and later ones.
  };

  static Status TooEarly(uint64_t push, uint64_t next) {
    return Busy("push {} of an order: push {} is not there yet", push, next);
  }
  static Status WaitsForRows(Step step) {
    return Busy("push of step {} waits for rows on disk", step);
  }

  static uint64_t HeldBytesOf(const Worker& worker) {
    uint64_t bytes = BytesOf(worker.held);
    for (const auto& [number, push] : worker.parked) bytes += BytesOf(push);
    return bytes;
  }

  // False if the piece is a whole push, whose rows are not in memory yet.
  bool MayTakeFirst(const Contribution& piece, ShardUpdater& updater) const {
    if (piece.pieces > 1 || applied_.Has(piece.step, piece.slice)) return true;
    const Contributions push{piece};
    return updater.Prepare({&push, 1});
  }

  const std::pair<const ProcessId, Worker>& Slowest() const {
    return *std::ranges::min_element(workers_, {}, [](const auto& w) { return w.second.clock; });
  }

  // Takes the parked pieces whose turn has come.
  void TakeParked(Worker& worker, ShardUpdater& updater) {
    while (!worker.parked.empty() && worker.parked.begin()->first == worker.next) {
      Contributions& pieces = worker.parked.begin()->second;
      const uint64_t number = worker.next;
      for (std::optional<Contribution>& piece : pieces) {
        if (piece.has_value() && !TakeInTurn(worker, piece, updater)) return;
      }
      worker.parked.erase(number);
      if (worker.next == number) return;
    }
  }

  // Takes a piece of push `next`. False: nothing has happened, because the push would be whole and
  // its rows are not in memory yet.
  bool TakeInTurn(Worker& worker, std::optional<Contribution>& piece, ShardUpdater& updater) {
    const uint32_t number = piece->piece;
    if (worker.held.empty()) worker.held.resize(piece->pieces);
    std::optional<Contribution>& place = worker.held[number];
    place.swap(piece);
    const bool whole = IsWhole(worker.held);
    const std::span<const Contributions> push(&worker.held, 1);
    const bool is_new = !applied_.Has(place->step, place->slice);
    if (whole && is_new && !updater.Prepare(push)) {
      place.swap(piece);
      return false;
    }
    updater.RecordContribution(*place);
    if (!whole) return true;
    if (is_new) {
      updater.Update({.step = place->step, .lr_scale = place->lr_scale}, push);
      applied_.Add(place->step, place->slice);
    }
    applied_.Settle(place->turn.settled);
    worker.clock = std::max(worker.clock, place->turn.clock);
    updater.MoveTime(now());
    held_bytes_ -= BytesOf(worker.held);
    worker.held.clear();
    ++worker.next;
    return true;
  }

  const Step staleness_;
  ViewNumber view_;
  std::map<ProcessId, Worker> workers_;
  AppliedSlices applied_;
  uint64_t held_bytes_ = 0;
};

}  // namespace

std::unique_ptr<ShardClock> MakeAsyncClock(Step staleness, const ClockState& start) {
  return std::make_unique<AsyncClock>(staleness, start);
}

}  // namespace dt::server
