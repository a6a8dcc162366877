// Rules for the attributes of operators and composites in a job file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/config/model_config.h"
#include "common/specs/attrs.h"
#include "ops/op_spec.h"

namespace dt::scheduler {

struct AttrRule {
  std::string_view name;
  AttrType type = AttrType::kText;
  bool required = false;
  double min = -1e300, max = 1e300;            // Range of a number, and of each number in a list.
  std::vector<std::string_view> choices = {};  // Allowed texts; empty if any text is allowed.
};

// The rules of an operator or composite; empty if it takes no attributes.
std::vector<AttrRule> AttrRules(std::string_view op);

// The node's attributes in the types that operators read: a whole number becomes a real one where
// that is asked for, and a single number becomes a list. Adds an error to `problems` for each wrong
// attribute, with its key and the node's file and line.
Attrs CheckedAttrs(const NodeConfig& node, std::vector<Status>& problems);

// The operators that may follow a dense layer, such as "relu".
std::span<const std::string_view> Activations();

}  // namespace dt::scheduler
