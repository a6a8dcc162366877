#include "worker/engine/check_attrs.h"

#include <algorithm>

#include "common/specs/optimizer.h"
#include "ops/op_spec.h"

namespace dt::worker {
namespace {

bool IsOfType(const AttrValue& value, AttrType type) {
  switch (type) {
    case AttrType::kBool:
      return std::holds_alternative<bool>(value);
    case AttrType::kInt:
      return std::holds_alternative<int64_t>(value);
    case AttrType::kFloat:
      return std::holds_alternative<double>(value);
    case AttrType::kText:
      return std::holds_alternative<std::string>(value);
    case AttrType::kInts:
      return std::holds_alternative<std::vector<int64_t>>(value);
  }
  return false;
}

Status CheckNode(const Node& node) {
  const OpSpec* const op = FindOp(node.op);
  if (op == nullptr) return OkStatus();
  for (const AttrSpec& attr : op->attrs) {
    const auto found = node.attrs.find(std::string(attr.name));
    if (found == node.attrs.end() && !attr.required) continue;
    if (found == node.attrs.end() || !IsOfType(found->second, attr.type)) {
      return Malformed("the plan's node \"{}\" ({}) has no usable attribute \"{}\"", node.name,
                       node.op, attr.name);
    }
    if (attr.name == "optimizer" &&
        FindOptimizer(std::get<std::string>(found->second)) == nullptr) {
      return Malformed("the plan's node \"{}\" names an optimizer that is none", node.name);
    }
  }
  return OkStatus();
}

}  // namespace

Status CheckAttrs(const Graph& graph) {
  for (const Node& node : graph.nodes) DT_TRY_STATUS(CheckNode(node));
  return OkStatus();
}

}  // namespace dt::worker
