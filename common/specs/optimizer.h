// The optimizers of tables and of dense parameters, and their hyperparameters: one list of each.
// The keys of the job file, its schema, the fingerprint, the attributes of update nodes, the tables
// in the documentation and the random configurations of tests all come from the two lists. The
// arithmetic is in ops/update/update.cc, and for GPUs in ops/update/rules_cuda.cuh.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>

#include "common/base/joined_names.h"

namespace dt {

// The most values that an embedding row may have.
inline constexpr uint32_t kRowDimMax = 4096;

enum class OptimizerKind {
  kSgd,
  kMomentum,
  kAdagrad,
  kRowwiseAdagrad,
  kAdam,
  kLazyAdam,
  kAdamW,
  kFtrl
};

// Which rows of a table L2 regularisation reaches. kGap: a pushed row also gets the decay of all
// steps since its last push. kTouched: a row gets only the decay of the step of the push.
enum class L2Scope { kGap, kTouched };
inline constexpr std::string_view kL2ScopeNames = "gap|touched";
std::string_view NameOf(L2Scope scope);

// How many rows of a table a step changes. kTouched: those that are pushed. kDense: all of them, as
// an optimizer of dense parameters would: see common/rows/missed_updates.h.
enum class UpdateScope { kTouched, kDense };
inline constexpr std::string_view kUpdateScopeNames = "touched|dense";
std::string_view NameOf(UpdateScope scope);

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kAdam;
  UpdateScope scope = UpdateScope::kTouched;  // For tables only.
  // These are listed in kOptimizerNumbers.
  float lr = 0.001f;
  float momentum = 0.9f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1.0e-8f;
  float initial_accumulator = 0.0f;
  float ftrl_l1 = 0.0f, ftrl_l2 = 0.0f, ftrl_beta = 1.0f;
  float weight_decay = 0.0f;
  // Changes to the gradient before the update; they apply to every optimizer.
  float l2 = 0.0f;                   // Added to the gradient as l2 · value.
  L2Scope l2_scope = L2Scope::kGap;  // For tables with scope kTouched only.
  float clip_row_norm = 0.0f;        // For tables only; 0 turns clipping off.
  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};

// ---------------------------------------------------------------- the numbers

using OptimizerMember = float OptimizerSpec::*;

struct OptimizerNumber {
  std::string_view name;
  OptimizerMember value = nullptr;  // The member's initial value is the default.
  double min = 0;
  double max = std::numeric_limits<double>::infinity();
  bool below_max = false;  // `max` itself is not allowed.
  // For optimizers that do not read this number: the key that has a similar effect. Writing the
  // number is then an error that names the key. If empty, the number may be written and is ignored.
  std::string_view otherwise = {};
  std::string_view meaning = {};
};

inline constexpr OptimizerNumber kOptimizerNumbers[] = {
    {.name = "lr", .value = &OptimizerSpec::lr, .max = 1e6, .meaning = "Learning rate."},
    {.name = "momentum",
     .value = &OptimizerSpec::momentum,
     .max = 1,
     .meaning = "momentum: share of the last update kept."},
    {.name = "beta1",
     .value = &OptimizerSpec::beta1,
     .max = 1,
     .below_max = true,
     .meaning = "adam family: decay of the first moment."},
    {.name = "beta2",
     .value = &OptimizerSpec::beta2,
     .max = 1,
     .below_max = true,
     .meaning = "adam family: decay of the second moment."},
    {.name = "epsilon",
     .value = &OptimizerSpec::epsilon,
     .max = 1,
     .meaning = "adam and adagrad families: added to the denominator."},
    {.name = "initial_accumulator",
     .value = &OptimizerSpec::initial_accumulator,
     .meaning = "adagrad family: start of the sum of squares."},
    {.name = "ftrl_l1", .value = &OptimizerSpec::ftrl_l1, .meaning = "ftrl: L1 strength."},
    {.name = "ftrl_l2", .value = &OptimizerSpec::ftrl_l2, .meaning = "ftrl: L2 strength."},
    {.name = "ftrl_beta",
     .value = &OptimizerSpec::ftrl_beta,
     .meaning = "ftrl: smoothing of the rate."},
    {.name = "weight_decay",
     .value = &OptimizerSpec::weight_decay,
     .max = 1e6,
     .otherwise = "l2",
     .meaning = "adamw: decoupled decay."},
};

// ---------------------------------------------------------------- the optimizers

struct OptimizerInfo {
  OptimizerKind kind;  // Also the position in the list.
  std::string_view name;
  uint32_t value_states = 0;  // Floats of state for each value of a row or dense parameter.
  // Floats of state for a whole row. Above 0, the optimizer is for tables only, and `instead` says
  // what dense parameters use.
  uint32_t row_states = 0;
  // The member that gives the initial value of the state; null: zero.
  OptimizerMember initial_state = nullptr;
  // The optimizer that dense parameters use instead of this one; none: the same.
  std::optional<OptimizerKind> instead = {};
  bool has_dense_scope = true;  // Missed updates of a row can be made up for.
  std::string_view reads;       // The names of the numbers that the optimizer reads.
};

inline constexpr OptimizerInfo kOptimizers[] = {
    {.kind = OptimizerKind::kSgd, .name = "sgd", .reads = "lr"},
    {.kind = OptimizerKind::kMomentum,
     .name = "momentum",
     .value_states = 1,
     .reads = "lr|momentum"},
    {.kind = OptimizerKind::kAdagrad,
     .name = "adagrad",
     .value_states = 1,
     .initial_state = &OptimizerSpec::initial_accumulator,
     .reads = "lr|epsilon|initial_accumulator"},
    {.kind = OptimizerKind::kRowwiseAdagrad,
     .name = "rowwise_adagrad",
     .row_states = 1,
     .initial_state = &OptimizerSpec::initial_accumulator,
     .instead = OptimizerKind::kAdagrad,
     .reads = "lr|epsilon|initial_accumulator"},
    {.kind = OptimizerKind::kAdam,
     .name = "adam",
     .value_states = 2,
     .reads = "lr|beta1|beta2|epsilon"},
    {.kind = OptimizerKind::kLazyAdam,
     .name = "lazy_adam",
     .value_states = 2,
     .instead = OptimizerKind::kAdam,
     .has_dense_scope = false,
     .reads = "lr|beta1|beta2|epsilon"},
    {.kind = OptimizerKind::kAdamW,
     .name = "adamw",
     .value_states = 2,
     .reads = "lr|beta1|beta2|epsilon|weight_decay"},
    {.kind = OptimizerKind::kFtrl,
     .name = "ftrl",
     .value_states = 2,
     .has_dense_scope = false,
     .reads = "lr|ftrl_l1|ftrl_l2|ftrl_beta"},
};

constexpr const OptimizerInfo& InfoOf(OptimizerKind kind) {
  return kOptimizers[static_cast<size_t>(kind)];
}
constexpr std::string_view NameOf(OptimizerKind kind) { return InfoOf(kind).name; }
constexpr OptimizerKind ForDense(const OptimizerInfo& optimizer) {
  return optimizer.instead.value_or(optimizer.kind);
}
constexpr bool IsForTablesOnly(const OptimizerInfo& optimizer) { return optimizer.row_states > 0; }
// Null if there is none of this name.
constexpr const OptimizerInfo* FindOptimizer(std::string_view name) {
  const auto* const found = std::ranges::find(kOptimizers, name, &OptimizerInfo::name);
  return found == std::end(kOptimizers) ? nullptr : found;
}

constexpr bool Reads(const OptimizerInfo& optimizer, std::string_view number) {
  for (std::string_view rest = optimizer.reads; !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find('|'));
    if (name == number) return true;
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
  }
  return false;
}

inline constexpr std::string_view kOptimizerNames = kJoinedNames<kOptimizers>;

static_assert(std::ranges::all_of(kOptimizers, [](const OptimizerInfo& optimizer) {
  return &InfoOf(optimizer.kind) == &optimizer && !IsForTablesOnly(InfoOf(ForDense(optimizer)));
}));

}  // namespace dt
