// The progress of a worker in an order to train. It outlives views: in the next one the order goes
// on.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/control/orders.h"

namespace dt::worker {

struct OrderProgress {
  uint64_t number = 0;             // The order's.
  std::optional<TimePoint> begun;  // Its first step.
  TrainDone done;
  // Asynchronous workers: slices whose pushes are acknowledged, as (step, slice), and the ranges
  // that were handed out to this worker. The reader's thread writes the latter.
  using Slices = absl::flat_hash_set<std::pair<Step, SliceIndex>>;
  Slices pushed = {};
  std::vector<SplitMessage> splits = {};
};

// Adds a step's mean losses, if it had samples. `first`: it is the order's first.
void AddStep(bool first, uint32_t samples, std::span<const double> losses, TrainDone& to);

// The steps of an asynchronous worker count when their pushes are acknowledged.
class PushedSteps {
 public:
  struct Pushed {
    Step step = 0;
    SliceIndex slice = 0;
    uint32_t samples = 0;
    std::vector<double> losses;  // By loss; empty without samples.
  };
  // `progress` outlives it.
  PushedSteps(const TrainOrder& order, OrderProgress& progress)
      : first_step_(order.first_step),
        progress_(progress),
        step_(order.first_step),
        samples_(progress.done.samples) {}

  void Add(Pushed pushed);
  // So many of those that were added are acknowledged.
  void Acknowledge(uint64_t count);
  Step step() const { return step_; }  // After the last one that is pushed.
  uint64_t samples() const { return samples_; }

 private:
  const Step first_step_;
  OrderProgress& progress_;
  std::deque<Pushed> pushed_;
  uint64_t acknowledged_ = 0;
  Step step_;
  uint64_t samples_;
};

}  // namespace dt::worker
