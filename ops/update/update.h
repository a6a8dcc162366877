// The optimizers: one arithmetic for embedding rows (servers) and dense parameters (workers). SGD;
// momentum (PyTorch's SGD with momentum); Adagrad; row-wise Adagrad (one accumulator a row); Adam,
// AdamW and LazyAdam (PyTorch's Adam, AdamW, SparseAdam; Adam on rows first decays both moments by
// beta^(steps_since_update - 1), AdamW then decays the value `steps_since_update` times, or once
// with l2_scope touched; a dense LazyAdam is Adam); FTRL-proximal (McMahan et al., KDD 2013,
// algorithm 1).
#pragma once

#include <cstdint>
#include <span>

#include "common/base/ids.h"
#include "common/specs/optimizer.h"

namespace dt {

struct UpdateInfo {
  Step step = 0;          // Of the push; t = step + 1 in bias correction.
  float lr_scale = 1.0f;  // Of the schedule.
  friend bool operator==(const UpdateInfo&, const UpdateInfo&) = default;
};

// Floats of state beside `dim` values of one row (dense parameters: one "row" of all elements,
// except row-wise Adagrad, whose rows are the last dimension).
uint32_t StateFloats(const OptimizerSpec& spec, uint32_t dim);
// What every float of the state begins as.
float InitialState(const OptimizerSpec& spec);
void InitState(const OptimizerSpec& spec, std::span<float> state);

// What depends on the step alone: computed once, in float64.
struct UpdateRates {
  float lr = 0;         // Scaled by the schedule.
  float adam_rate = 0;  // With Adam's bias corrections: the rate, and the factor of the root of v.
  float adam_root = 1;
  double keep = 1;  // AdamW: the factor of the value, for each step of the steps_since_update.
};

// Values of an embedding row.
inline constexpr uint32_t kRowDimMax = 4096;

// Updates embedding rows of one push. Immutable; any thread.
class RowUpdate {
 public:
  RowUpdate(const OptimizerSpec& spec, const UpdateInfo& info);

  // `steps_since_update` ≥ 1: steps since the row's last push (step + 1 for a row never pushed). l2
  // · value · (steps_since_update or 1) is added to the gradient, then the row's norm is clipped,
  // then the row updated. REQUIRES: state holds StateFloats floats; at most kRowDimMax values.
  void Apply(uint64_t steps_since_update, std::span<float> value, std::span<float> state,
             std::span<const float> grad) const;

 private:
  OptimizerSpec spec_;
  UpdateRates rates_;
};

// A piece of a dense parameter, elementwise: state is split in arrays as long as the parameter.
// `grad` already has l2 and clipping. Not for row-wise Adagrad (refused for dense parameters).
uint32_t DenseStates(const OptimizerSpec& spec);  // Number of state arrays.
void UpdateDense(const OptimizerSpec& spec, const UpdateInfo& info, std::span<float> value,
                 std::span<float* const> states, std::span<const float> grad);

}  // namespace dt
