#include "ops/update/attrs.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt {
namespace {

std::string_view KeyOf(const Attrs::value_type& attr) { return attr.first; }

OptimizerKind KindNamed(std::string_view name) {
  const OptimizerInfo* const optimizer = FindOptimizer(name);
  DT_CHECK(optimizer != nullptr);
  return optimizer->kind;
}

}  // namespace

Attrs OptimizerAttrs(const OptimizerSpec& spec) {
  Attrs attrs;
  attrs["optimizer"] = std::string(NameOf(spec.kind));
  for (const OptimizerNumber& number : kOptimizerNumbers) {
    attrs[std::string(number.name)] = static_cast<double>(spec.*number.value);
  }
  return attrs;
}

OptimizerSpec OptimizerFromAttrs(const Attrs& attrs) {
  OptimizerSpec spec;
  spec.kind = KindNamed(std::get<std::string>(attrs.at("optimizer")));
  for (const OptimizerNumber& number : kOptimizerNumbers) {
    // Updates read this at each step, and `at` would construct a string from the name.
    const auto attr = std::ranges::find(attrs, number.name, KeyOf);
    spec.*number.value = static_cast<float>(std::get<double>(attr->second));
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
