#include "ops/update/attrs.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/check.h"

namespace dt {
namespace {

constexpr std::array<std::pair<OptimizerKind, std::string_view>, 8> kNames = {{
    {OptimizerKind::kSgd, "sgd"},
    {OptimizerKind::kMomentum, "momentum"},
    {OptimizerKind::kAdagrad, "adagrad"},
    {OptimizerKind::kRowwiseAdagrad, "rowwise_adagrad"},
    {OptimizerKind::kAdam, "adam"},
    {OptimizerKind::kLazyAdam, "lazy_adam"},
    {OptimizerKind::kAdamW, "adamw"},
    {OptimizerKind::kFtrl, "ftrl"},
}};

struct Field {
  const char* name;
  float OptimizerSpec::*member;
};
constexpr Field kFields[] = {
    {"lr", &OptimizerSpec::lr},
    {"momentum", &OptimizerSpec::momentum},
    {"beta1", &OptimizerSpec::beta1},
    {"beta2", &OptimizerSpec::beta2},
    {"epsilon", &OptimizerSpec::epsilon},
    {"initial_accumulator", &OptimizerSpec::initial_accumulator},
    {"ftrl_l1", &OptimizerSpec::ftrl_l1},
    {"ftrl_l2", &OptimizerSpec::ftrl_l2},
    {"ftrl_beta", &OptimizerSpec::ftrl_beta},
    {"weight_decay", &OptimizerSpec::weight_decay},
};

OptimizerKind KindNamed(std::string_view name) {
  for (const auto& [kind, text] : kNames) {
    if (text == name) return kind;
  }
  DT_UNREACHABLE();
}

std::string_view OptimizerName(OptimizerKind kind) {
  for (const auto& [candidate, text] : kNames) {
    if (candidate == kind) return text;
  }
  DT_UNREACHABLE();
}

}  // namespace

Attrs OptimizerAttrs(const OptimizerSpec& spec) {
  Attrs attrs;
  attrs["optimizer"] = std::string(OptimizerName(spec.kind));
  for (const Field& field : kFields) attrs[field.name] = static_cast<double>(spec.*field.member);
  return attrs;
}

namespace {
std::string_view KeyOf(const Attrs::value_type& attr) { return attr.first; }
}  // namespace

bool IsOptimizer(std::string_view name) {
  return std::ranges::any_of(kNames, [name](const auto& known) { return known.second == name; });
}

OptimizerSpec OptimizerFromAttrs(const Attrs& attrs) {
  OptimizerSpec spec;
  spec.kind = KindNamed(std::get<std::string>(attrs.at("optimizer")));
  for (const Field& field : kFields) {
    // Updates read this at each step: `at` would make a string of the name.
    const auto attr = std::ranges::find(attrs, std::string_view(field.name), KeyOf);
    spec.*field.member = static_cast<float>(std::get<double>(attr->second));
  }
  return spec;
}

Attrs RowOptimizerAttrs(const OptimizerSpec& spec, bool scheduled) {
  Attrs attrs = OptimizerAttrs(spec);
  attrs["l2"] = static_cast<double>(spec.l2);
  attrs["l2_by_gap"] = spec.l2_scope == L2Scope::kGap;
  attrs["clip_row_norm"] = static_cast<double>(spec.clip_row_norm);
  attrs["scheduled"] = scheduled;
  return attrs;
}

OptimizerSpec RowOptimizerFromAttrs(const Attrs& attrs) {
  OptimizerSpec spec = OptimizerFromAttrs(attrs);
  spec.l2 = static_cast<float>(std::get<double>(attrs.at("l2")));
  spec.l2_scope = std::get<bool>(attrs.at("l2_by_gap")) ? L2Scope::kGap : L2Scope::kTouched;
  spec.clip_row_norm = static_cast<float>(std::get<double>(attrs.at("clip_row_norm")));
  return spec;
}

}  // namespace dt
