// A process of the job in a simulation: it lives, may stand still, and ends by itself or is killed.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "test/sim/cluster/wires.h"
#include "test/sim/cluster/world.h"

namespace dt::sim {

inline constexpr Duration kTick = milliseconds(20);  // Between two turns of a process.

inline constexpr const char* kSchedulerAddress = "scheduler";
// How long a process tries to join.
inline constexpr Duration kJoinTimeout = seconds(30);
inline std::string AddressOf(uint64_t incarnation) {
  return "process/" + std::to_string(incarnation);
}

class Process {
 public:
  Process(World& world, Wires& wires, Node node, uint64_t incarnation)
      : world_(world), wires_(wires), node_(node), incarnation_(incarnation), begun_(world.Now()) {}
  virtual ~Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  Node node() const { return node_; }
  uint64_t incarnation() const { return incarnation_; }
  bool alive() const { return alive_; }
  // Called when it has ended because the job begins again.
  void SetJoinsAgain(std::function<void()> joins_again) { joins_again_ = std::move(joins_again); }
  // What it does, for a test that fails.
  virtual std::string Text() const { return "lives"; }
  // Stands still: nothing that happens to it is noticed before its time is over.
  void Pause(Duration duration) {
    asleep_until_ = std::max(asleep_until_, world_.Now() + duration);
    world_.At(asleep_until_, [this] { TryWake(); });
  }
  // As SIGKILL. What the process has on disk stays.
  void Kill() {
    if (!alive_) return;
    alive_ = false;
    OnKill();
  }

 protected:
  // Forgets the process's addresses, and ends what runs of it.
  virtual void OnKill() = 0;
  void End() { alive_ = false; }
  void JoinAgain() const {
    if (joins_again_) joins_again_();
  }

  void Later(Duration delay, std::function<void()> event) {
    world_.After(delay,
                 [this, event = std::move(event)]() mutable { WhenAwake(std::move(event)); });
  }
  void WhenAwake(std::function<void()> event) {
    if (!alive_) return;
    if (world_.Now() < asleep_until_ || !noticed_late_.empty()) {
      noticed_late_.push_back(std::move(event));
    } else {
      event();
    }
  }
  World& world() const { return world_; }
  // Still not welcomed.
  bool TriedLongEnough() const { return world_.Now() - begun_ > kJoinTimeout; }
  Wires& wires() const { return wires_; }

 private:
  void TryWake() {
    if (world_.Now() < asleep_until_) return;
    for (auto& event : std::exchange(noticed_late_, {})) {
      if (alive_) event();
    }
  }

  World& world_;
  Wires& wires_;
  const Node node_;
  const uint64_t incarnation_;
  const TimePoint begun_;
  bool alive_ = true;
  std::function<void()> joins_again_;
  TimePoint asleep_until_{};
  std::vector<std::function<void()>> noticed_late_;
};

}  // namespace dt::sim
