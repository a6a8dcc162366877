#include <algorithm>
#include <vector>

#include "ops/op_families.h"
#include "ops/op_spec.h"

namespace dt {
namespace {

std::vector<const OpSpec*> MakeList() {
  std::vector<const OpSpec*> all;
#define DT_ADD_SPECS(Family) \
  for (const OpSpec& spec : Family##Specs()) all.push_back(&spec);
  DT_OP_FAMILIES(DT_ADD_SPECS)
  DT_EXECUTOR_FAMILIES(DT_ADD_SPECS)
#undef DT_ADD_SPECS
  std::ranges::sort(all, {}, [](const OpSpec* spec) { return spec->name; });
  return all;
}

const std::vector<const OpSpec*>& List() {
  static const std::vector<const OpSpec*> list = MakeList();
  return list;
}

}  // namespace

std::span<const OpSpec* const> AllOps() { return List(); }

const OpSpec* FindOp(std::string_view name) {
  const auto at =
      std::ranges::lower_bound(List(), name, {}, [](const OpSpec* s) { return s->name; });
  return at != List().end() && (*at)->name == name ? *at : nullptr;
}

OpTraits TraitsOf(std::string_view op) {
  const OpSpec* const spec = FindOp(op);
  return spec == nullptr ? OpTraits() : spec->traits;
}

bool OpSpec::TakesAttr(std::string_view attr) const {
  return std::ranges::find(attrs, attr, &AttrSpec::name) != attrs.end();
}

}  // namespace dt
