// The attributes of the operators `update` and `update_rows`, in the form that OptimizerAttrs and
// RowOptimizerAttrs (attrs.h) make. `update` lacks those that concern rows.
#pragma once

#include <span>

#include "ops/op_spec.h"

namespace dt {

inline constexpr AttrSpec kRowOptimizerAttrs[] = {
    {.name = "optimizer", .type = AttrType::kText, .required = true},
    {.name = "lr", .type = AttrType::kFloat, .required = true},
    {.name = "momentum", .type = AttrType::kFloat, .required = true},
    {.name = "beta1", .type = AttrType::kFloat, .required = true},
    {.name = "beta2", .type = AttrType::kFloat, .required = true},
    {.name = "epsilon", .type = AttrType::kFloat, .required = true},
    {.name = "initial_accumulator", .type = AttrType::kFloat, .required = true},
    {.name = "ftrl_l1", .type = AttrType::kFloat, .required = true},
    {.name = "ftrl_l2", .type = AttrType::kFloat, .required = true},
    {.name = "ftrl_beta", .type = AttrType::kFloat, .required = true},
    {.name = "weight_decay", .type = AttrType::kFloat, .required = true},
    {.name = "l2", .type = AttrType::kFloat, .required = true},
    {.name = "l2_by_gap", .type = AttrType::kBool, .required = true},
    {.name = "clip_row_norm", .type = AttrType::kFloat, .required = true},
    {.name = "scheduled", .type = AttrType::kBool, .required = true},
};
inline constexpr std::span kOptimizerAttrs = std::span(kRowOptimizerAttrs).first<11>();

}  // namespace dt
