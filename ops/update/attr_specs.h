// The attributes of the operators `update` and `update_rows`, in the form that OptimizerAttrs and
// RowOptimizerAttrs (attrs.h) make. `update` has none of those for rows.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "common/specs/optimizer.h"
#include "ops/op_spec.h"

namespace dt {

inline constexpr AttrSpec kRowRuleAttrs[] = {
    {.name = "l2", .type = AttrType::kFloat, .required = true},
    {.name = "l2_by_gap", .type = AttrType::kBool, .required = true},
    {.name = "clip_row_norm", .type = AttrType::kFloat, .required = true},
    {.name = "scheduled", .type = AttrType::kBool, .required = true},
};

// The optimizer's name, its numbers, then the attributes for rows.
inline constexpr auto kRowOptimizerAttrs = [] {
  constexpr size_t kNumbers = std::size(kOptimizerNumbers);
  std::array<AttrSpec, 1 + kNumbers + std::size(kRowRuleAttrs)> attrs;
  attrs[0] = {.name = "optimizer", .type = AttrType::kText, .required = true};
  for (size_t i = 0; i < kNumbers; ++i) {
    attrs[1 + i] = {.name = kOptimizerNumbers[i].name, .type = AttrType::kFloat, .required = true};
  }
  std::ranges::copy(kRowRuleAttrs, attrs.begin() + 1 + kNumbers);
  return attrs;
}();
inline constexpr std::span kOptimizerAttrs =
    std::span(kRowOptimizerAttrs).first<1 + std::size(kOptimizerNumbers)>();

}  // namespace dt
