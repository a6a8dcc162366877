// The arithmetic of the optimizers (common/specs/optimizer.h lists them), the same for embedding
// rows (servers) and dense parameters (workers). update.cc says where each comes from.
//
// On rows, Adam and AdamW first decay both moments by beta^(steps_since_update - 1), and AdamW
// decays the value `steps_since_update` times, or once with l2_scope touched. LazyAdam on dense
// parameters is Adam. With scope kDense the updates that a row has missed are made up for first
// (common/rows/missed_updates.h), so that its steps_since_update is 1.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/ids.h"
#include "common/specs/optimizer.h"

namespace dt {

struct UpdateInfo {
  Step step = 0;          // The push's step; bias correction uses t = step + 1.
  float lr_scale = 1.0f;  // The schedule's factor.
  friend bool operator==(const UpdateInfo&, const UpdateInfo&) = default;
};

// Number of state floats for `dim` values of one row: of its values, then of the row, then with
// scope kDense the rate of its last push. (Dense parameters count as one row of all elements;
// row-wise Adagrad is for tables only.)
uint32_t StateFloats(const OptimizerSpec& spec, uint32_t dim);
// The initial value of every state float, except of the rate.
float InitialState(const OptimizerSpec& spec);
// The state of a row that was never pushed.
void InitState(const OptimizerSpec& spec, std::span<float> state);

// Values that depend on the step alone, computed once in float64.
struct UpdateRates {
  float lr = 0;  // Scaled by the schedule.
  // With Adam's bias corrections: the rate, and the factor of the root of v.
  float adam_rate = 0;
  float adam_root = 1;
  double keep = 1;  // AdamW: factor of the value for each step since the last update.
};

// Updates the embedding rows of one push. Immutable; any thread.
class RowUpdate {
 public:
  RowUpdate(const OptimizerSpec& spec, const UpdateInfo& info);

  // Adds l2 · value · (steps_since_update or 1) to the gradient, then clips its norm, then updates
  // the row. `steps_since_update` ≥ 1: steps since the row's last push (step + 1 for a row never
  // pushed). REQUIRES: state holds StateFloats floats; at most kRowDimMax values.
  void Apply(uint64_t steps_since_update, std::span<float> value, std::span<float> state,
             std::span<const float> grad) const;

 private:
  OptimizerSpec spec_;
  UpdateRates rates_;
};

// Updates a piece of a dense parameter, element by element; each state is an array as long as the
// parameter. `grad` already includes l2 and clipping. Not for row-wise Adagrad, which is refused
// for dense parameters.
uint32_t DenseStates(const OptimizerSpec& spec);  // Number of state arrays.
void UpdateDense(const OptimizerSpec& spec, const UpdateInfo& info, std::span<float> value,
                 std::span<float* const> states, std::span<const float> grad);

}  // namespace dt
