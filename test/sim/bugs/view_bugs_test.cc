// Goal: the simulation notices what must not be when the workers of a job change. Method: as in
// planted_bugs_test.cc.
#include <algorithm>
#include <map>
#include <set>

#include "common/control/packet.h"
#include "test/sim/bugs/bug.h"

namespace dt::sim {
namespace {

constexpr Misfortunes kLostWorkers = {.network = {.delay_max = milliseconds(20)},
                                      .lasting = seconds(20),
                                      .from_step = 1,
                                      .lose_worker = 0.1};

// Returns null if the message is no order to train.
TrainOrder* TrainOf(ControlMessage& message) {
  auto* const order = std::get_if<OrderMessage>(&message);
  return order != nullptr ? std::get_if<TrainOrder>(&order->what) : nullptr;
}

// A bug in what the scheduler and processes tell each other.
class ControlBug : public Bug {
 public:
  using Bug::Bug;

 private:
  // True: the message has been changed.
  virtual bool Change(const std::string& to, const std::string& from, ControlMessage& message) = 0;

  bool OnControl(const std::string& to, const std::string& from, Frames& frames) override {
    Result<Packet> packet = DecodePacket(frames);
    if (!packet.ok() || packet->payload.empty()) return true;
    Result<ControlMessage> message =
        DecodeControl(std::as_bytes(std::span<const char>(packet->payload)));
    if (!message.ok() || !Change(to, from, *message)) return true;
    packet->payload = EncodeControl(*message);
    frames = EncodePacket(*packet);
    return true;
  }
};

// A server accepts a message of a worker of the view before: its Complete of the step that is done
// again.
class AcceptsAnOldView : public ControlBug {
 public:
  using ControlBug::ControlBug;

 private:
  bool Change(const std::string&, const std::string&, ControlMessage& message) override {
    if (const auto* begins = std::get_if<ViewBeginsMessage>(&message)) {
      if (struck() == 0) again_ = begins->step;
    }
    return false;
  }
  bool OnPush(const std::string& to, const std::string& from, PushRequest& push, Frames&) override {
    if (!again_ || push.step != *again_ || !struck_at_.insert(to).second) return true;
    if (struck() == 0) Strike();
    story().cluster().wires().Deliver(
        to, from, Encode(CompleteRequest{.stamp = push.stamp, .step = *again_}));
    return true;
  }
  std::optional<Step> again_;
  std::set<std::string> struck_at_;  // Executors.
};

// One worker that waits in the barrier hears that the step is complete, and makes its update; the
// others do the step again.
class AppliesHalfAStep : public ControlBug {
 public:
  // One worker dies when the others are about to wait for it.
  explicit AppliesHalfAStep(Story& of) : ControlBug(of) {
    const JobConfig& job = of.cluster().job();
    of.cluster().SetFailpoint([last = job.cluster.servers + job.cluster.workers](
                                  uint32_t number, std::string_view place, uint64_t at) {
      return number == last && place == "barrier" && at == 3;
    });
  }

 private:
  bool Change(const std::string& to, const std::string& from, ControlMessage& message) override {
    if (const auto* report = std::get_if<ViewReportMessage>(&message)) {
      if (report->entered) entered_.insert({from, report->step});
    }
    auto* const begins = std::get_if<ViewBeginsMessage>(&message);
    if (begins == nullptr || !entered_.contains({to, begins->step})) return false;
    if (struck() == 0) {
      struck_at_ = {to, begins->view};
      Strike();
    }
    // It may come twice.
    if (struck_at_ != std::pair(to, begins->view)) return false;
    ++begins->step;
    return true;
  }
  std::set<std::pair<std::string, Step>> entered_;  // By worker.
  std::pair<std::string, ViewNumber> struck_at_;
};

// In the new view nobody has the slices of the worker that was lost.
class ForgetsASlice : public ControlBug {
 public:
  using ControlBug::ControlBug;

 private:
  bool Change(const std::string&, const std::string&, ControlMessage& message) override {
    TrainOrder* const train = TrainOf(message);
    if (train == nullptr || train->slice_owner.back() >= 3) return false;
    if (struck() == 0) Strike();
    train->slice_owner.front() = train->slice_owner.back();
    train->slice_owner.back() = 3;
    return true;
  }
};

// Asynchronous training: nobody does what a lost worker has left of an order.
class ForgetsWhatIsLeft : public ControlBug {
 public:
  using ControlBug::ControlBug;

 private:
  bool Change(const std::string&, const std::string&, ControlMessage& message) override {
    TrainOrder* const train = TrainOf(message);
    if (train == nullptr) return false;
    const uint64_t number = std::get<OrderMessage>(message).number;
    const std::vector<uint32_t>& first =
        owners_.try_emplace({train->first_step, number}, train->slice_owner).first->second;
    bool changed = false;
    for (size_t slice = 0; slice < first.size(); ++slice) {
      if (train->slice_owner[slice] == first[slice]) continue;
      if (train->slice_owner[slice] != 0) {
        changed = true;
        if (struck() == 0 && !IsBegun(train->end_step - 1, slice)) Strike();
      }
      train->slice_owner[slice] = 0;
    }
    return changed;
  }
  // The lost worker may have done all of it, and have been lost before its report.
  bool IsBegun(Step step, size_t slice) {
    const auto applied = [&](const server::Shard& shard) {
      const server::ClockState state = shard.clock().state();
      return step < state.settled ||
             std::ranges::any_of(state.applied, [&](const server::ClockState::Applied& each) {
               return each.step == step && (each.slices >> slice & 1) != 0;
             });
    };
    for (uint32_t s = 0; s < story().cluster().servers(); ++s) {
      const SimServer* const server = story().cluster().server(s);
      if (server == nullptr || !server->alive()) continue;
      for (const server::ShardSet* const set : server->shard_sets()) {
        if (std::ranges::any_of(set->shards(), applied)) return true;
      }
    }
    return false;
  }
  std::map<std::pair<Step, uint64_t>, std::vector<uint32_t>> owners_;  // By order.
};

// A server does not know a slice again that it has applied.
class CountsASliceTwice : public ControlBug {
 public:
  using ControlBug::ControlBug;

 private:
  bool Change(const std::string&, const std::string&, ControlMessage&) override { return false; }
  bool OnPush(const std::string&, const std::string&, PushRequest& push, Frames& frames) override {
    if (push.mode != PushMode::kGradients || push.stamp.view == ViewNumber(1)) return true;
    const bool applied = std::ranges::any_of(
        push.pieces, [&](const ShardPiece& piece) { return IsApplied(piece.shard, push); });
    if (!applied) return true;
    push.slice += push.slices;
    push.slices *= 2;
    frames = Encode(push);
    if (struck() == 0) Strike();
    return true;
  }
  // By an earlier push than this one.
  bool IsApplied(ShardId id, const PushRequest& push) {
    const auto pushed = [&](const server::ClockState::Applied& applied) {
      return applied.step == push.step && (applied.slices >> push.slice & 1) != 0;
    };
    const auto own = [&](const server::ClockState::Turn& turn) {
      return turn.worker == push.turn.worker && turn.view == push.stamp.view &&
             turn.next > push.turn.number;
    };
    for (uint32_t s = 0; s < story().cluster().servers(); ++s) {
      const SimServer* const server = story().cluster().server(s);
      if (server == nullptr || !server->alive()) continue;
      for (const server::ShardSet* const set : server->shard_sets()) {
        const server::Shard* const shard = set->Find(id);
        if (shard == nullptr || !shard->place().head) continue;
        const server::ClockState state = shard->clock().state();
        if (std::ranges::any_of(state.turns, own)) return false;
        return std::ranges::any_of(state.applied, pushed);
      }
    }
    return false;
  }
};

// A worker that joins gets no values.
class KeepsTheNewcomersValues : public ControlBug {
 public:
  using ControlBug::ControlBug;

 private:
  bool Change(const std::string&, const std::string&, ControlMessage& message) override {
    auto* const begins = std::get_if<ViewBeginsMessage>(&message);
    if (begins == nullptr || begins->newcomers.empty() || begins->step == 0) return false;
    if (struck() == 0) Strike();
    begins->newcomers.clear();
    return true;
  }
};

TEST(ViewBugs, AnAcceptedMessageOfAnOldViewIsCaught) {
  ExpectCaught<AcceptsAnOldView>(Mode::kManyWorkers, kLostWorkers);
}
TEST(ViewBugs, AStepThatIsHalfAppliedIsCaught) {
  ExpectCaught<AppliesHalfAStep>(Mode::kManyWorkers, {.network = {.delay_max = milliseconds(20)}});
}
TEST(ViewBugs, ASliceThatNobodyHasIsCaught) {
  ExpectCaught<ForgetsASlice>(Mode::kManyWorkers, kLostWorkers);
}
TEST(ViewBugs, ALostWorkersSlicesThatNobodyDoesAreCaught) {
  ExpectCaught<ForgetsWhatIsLeft>(Mode::kBoundedManyWorkers, kLostWorkers);
}
TEST(ViewBugs, ASliceThatCountsTwiceIsCaught) {
  ExpectCaught<CountsASliceTwice>(Mode::kBoundedManyWorkers, kLostWorkers);
  ExpectCaught<CountsASliceTwice>(Mode::kUnboundedManyWorkers, kLostWorkers);
}
TEST(ViewBugs, ANewcomerWithoutValuesIsCaught) {
  ExpectCaught<KeepsTheNewcomersValues>(Mode::kManyWorkers,
                                        {.network = {.delay_max = milliseconds(20)},
                                         .lasting = seconds(20),
                                         .from_step = 1,
                                         .release_worker = 0.05,
                                         .lose_worker = 0.1,
                                         .worker_returns = 1});
}

}  // namespace
}  // namespace dt::sim
