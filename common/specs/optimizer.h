// An optimizer and its hyper-parameters, for tables and for dense parameters.
#pragma once

#include <string_view>

namespace dt {

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
inline constexpr std::string_view kOptimizerNames =
    "sgd|momentum|adagrad|rowwise_adagrad|adam|lazy_adam|adamw|ftrl";
std::string_view NameOf(OptimizerKind kind);

// Which rows of a table L2 regularisation reaches. kGap: a row that is pushed also gets what it
// would have got at every step since its last push. kTouched: only what one push adds.
enum class L2Scope { kGap, kTouched };
inline constexpr std::string_view kL2ScopeNames = "gap|touched";
std::string_view NameOf(L2Scope scope);

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kAdam;
  float lr = 0.001f;
  float momentum = 0.9f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1.0e-8f;
  float initial_accumulator = 0.0f;  // Of adagrad.
  float ftrl_l1 = 0.0f, ftrl_l2 = 0.0f, ftrl_beta = 1.0f;
  float weight_decay = 0.0f;         // Of adamw only; decoupled from the gradient.
  float l2 = 0.0f;                   // Added to the gradient as l2 · value.
  L2Scope l2_scope = L2Scope::kGap;  // For tables only.
  float clip_row_norm = 0.0f;        // For tables only; 0 turns it off.
  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};

}  // namespace dt
