// The clock of synchronous training.
//
//   step t ──all slices of t held as a whole, and t known to be complete──▶ sum, apply, step t + 1
//
// Sums run in slice order, so the bits depend neither on the order of arrival nor on the number of
// shards.
#include <algorithm>
#include <map>

#include "common/base/check.h"
#include "server/shard/shard_clock.h"

namespace dt::server {
namespace {

class SyncClock : public ShardClock {
 public:
  explicit SyncClock(uint32_t slices) : slices_(slices) { DT_CHECK(slices > 0); }

  Step now() const override { return now_; }

  Status Take(Contribution contribution, ShardUpdater& updater) override {
    const Step step = contribution.step;
    if (step < now_) return OkStatus();
    if (step > now_ && (step > now_ + 1 || !Gathered(now_))) {
      return Busy("push of step {}, which waits for {}", step, Missing());
    }
    if (contribution.slice >= slices_) {
      return Malformed("slice {} of {}", contribution.slice, slices_);
    }
    const uint64_t bytes = BytesOf(contribution);
    const uint32_t piece = contribution.piece;
    Contributions& push = HeldOf(step)[contribution.slice];
    DT_TRY(const bool added, AddPiece(std::move(contribution), push));
    if (!added) return OkStatus();
    held_bytes_ += bytes;
    updater.RecordContribution(*push[piece]);
    return OkStatus();
  }

  void Advance(Step step, ShardUpdater& updater) override {
    while (now_ < step && Gathered(now_)) {
      const auto it = held_.find(now_);
      Slices& slices = it->second;
      if (!updater.Prepare(slices)) return;
      updater.RecordComplete(now_);
      updater.Update({.step = now_, .lr_scale = slices[0][0]->lr_scale}, slices);
      for (Contributions& push : slices) {
        held_bytes_ -= BytesOf(push);
        push.clear();
      }
      spare_ = held_.extract(it);
      updater.MoveTime(++now_);
    }
  }

  bool CanReach(Step step) const override {
    Step reached = now_;
    while (reached < step && Gathered(reached)) ++reached;
    return reached >= step;
  }

  Pullable MayPull(PullMode mode, Step step) const override {
    if (now_ < step) return Pullable::kNotYet;
    return mode == PullMode::kTrain && now_ > step ? Pullable::kTooLate : Pullable::kYes;
  }

  bool settled() const override { return !CanReach(now_ + 1); }

  std::string Missing() const override {
    return fmt::format("{} of step {}", MissingSlice(), now_);
  }

  Status Reset(const ClockState& state) override {
    held_.clear();
    held_bytes_ = 0;
    now_ = state.now;
    for (const Contribution& each : state.held) {
      if (each.slice >= slices_ || each.step < now_ || each.step > now_ + 1) {
        return Malformed("slice {} of step {} at step {}", each.slice, each.step, now_);
      }
      DT_TRY(const bool added, AddPiece(each, HeldOf(each.step)[each.slice]));
      if (added) held_bytes_ += BytesOf(each);
    }
    return OkStatus();
  }
  ClockState state() const override {
    ClockState state{.now = now_};
    for (const auto& [step, slices] : held_) {
      for (const Contributions& push : slices) AppendPieces(push, state.held);
    }
    return state;
  }

  uint64_t held_bytes() const override { return held_bytes_; }

 private:
  using Slices = std::vector<Contributions>;

  Slices& HeldOf(Step step) {
    const auto it = held_.find(step);
    if (it != held_.end()) return it->second;
    if (spare_.empty()) return held_.try_emplace(step, slices_).first->second;
    spare_.key() = step;
    return held_.insert(std::move(spare_)).position->second;
  }

  bool Gathered(Step step) const {
    const auto it = held_.find(step);
    return it != held_.end() && std::ranges::all_of(it->second, IsWhole);
  }

  std::string MissingSlice() const {
    const auto it = held_.find(now_);
    if (it == held_.end()) return "every slice";
    for (size_t s = 0; s < it->second.size(); ++s) {
      const Contributions& push = it->second[s];
      if (push.empty()) return fmt::format("slice {}", s);
      for (size_t p = 0; p < push.size(); ++p) {
        if (!push[p].has_value()) return fmt::format("slice {} piece {} of {}", s, p, push.size());
      }
    }
    return "nothing";
  }

  const uint32_t slices_;
  Step now_ = 0;
  std::map<Step, Slices> held_;  // Contributions to now_ and to the step after it.
  // The node of the last applied step, used for the next one.
  std::map<Step, Slices>::node_type spare_{};
  uint64_t held_bytes_ = 0;
};

}  // namespace

std::unique_ptr<ShardClock> MakeSyncClock(uint32_t slices) {
  return std::make_unique<SyncClock>(slices);
}

}  // namespace dt::server
