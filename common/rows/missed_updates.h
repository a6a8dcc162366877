// The optimizer of a table with `scope: dense` updates every row at every step, as an optimizer of
// dense parameters does, although a server touches a row only when it is read or pushed. Between
// two pushes the gradient of a row is l2 · value alone. The updates of these steps are made up for
// at once, when the row is read or pushed next: momentum goes on moving it, its moments decay, l2
// and weight_decay shrink it. A row that was never pushed keeps its initial values.
//
// How: the first moment decays by β1 a step, so its sum over many steps is a geometric series. The
// second moment, the bias corrections and l2's gradient change slowly: they are evaluated in the
// middle of a stride, and strides grow. Without l2 the steps between two pushes are mostly one
// stride. Momentum and SGD are linear, so theirs is exact. The distance from the optimizers of
// PyTorch is in test/unit/server/table/missed_updates_test.cc.
//
// The last float of a row's state is the rate of its last push (lr and schedule). Missed updates
// use it, so that a row does not jump when the schedule does.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/specs/optimizer.h"

namespace dt {

// Immutable; any thread.
class MissedUpdates {
 public:
  // REQUIRES: spec.scope is kDense, and its optimizer has one.
  explicit MissedUpdates(const OptimizerSpec& spec);

  // The steps from `first` to before `now`, of which none pushed the row; none if `first` is not
  // below `now`.
  struct Steps {
    Step first = 0, now = 0;
  };
  // Values and state as after these steps. `state`: of as many values, as in ops/update/update.h.
  void Apply(Steps steps, std::span<float> value, std::span<float> state) const;
  // The values alone. At most kRowDimMax of them.
  void ApplyToValues(Steps steps, std::span<float> value, std::span<const float> state) const;

 private:
  // A number of successive steps that are made up for together.
  struct Stride {
    double keep1 = 1, keep2 = 1;  // Adam's moments are multiplied by these.
    double first_sum = 0;         // Sum of β1^k over its steps.
    double second_mean = 1;       // The mean factor of the second moment in it.
    double centre = 0;            // The step in it that stands for all.
  };
  struct Row {
    std::span<float> value, first, second;  // `first` alone, if the optimizer has one state.
    float rate = 0;
  };
  struct Moments {
    std::span<const float> first, second;
    float rate = 0;
  };

  void MakeStrides();
  void MakeStridesWithL2();
  Stride StrideWithL2(uint64_t steps) const;
  uint64_t StrideAfter(uint64_t done, uint64_t t) const;
  float FirstCorrection(uint64_t t) const;
  float SecondCorrection(uint64_t t) const;

  void Linear(uint64_t count, const Row& row) const;
  void Adagrad(uint64_t count, const Row& row) const;
  void RowwiseAdagrad(uint64_t count, const Row& row) const;
  void AdamWithL2(uint64_t count, Step first, const Row& row) const;
  void AdamValues(uint64_t count, Step first, const Moments& row, std::span<float> values) const;

  const OptimizerSpec spec_;
  std::vector<Stride> strides_;      // By their numbers of steps; longer ones are computed.
  std::vector<float> corrections1_;  // 1 / (1 - β1^t), by t.
  std::vector<float> corrections2_;  // 1 / √(1 - β2^t), by t.
};

}  // namespace dt
