// Which attributes an operator or composite takes from a job file.
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
  double min = -1e300, max = 1e300;            // Of numbers, and of each number of a list.
  std::vector<std::string_view> choices = {};  // Of texts; empty: any.
};

// Of every operator and composite that takes attributes; empty for others.
std::vector<AttrRule> AttrRules(std::string_view op);

// The node's attributes in the form the operators read: whole numbers where a real one is asked
// become real, a single number where a list is asked becomes a list. Adds to `problems` one error
// for each attribute that is wrong, with its key and the node's place.
Attrs CheckedAttrs(const NodeConfig& node, std::vector<Status>& problems);

// "relu" …: the operators that may follow a dense layer.
std::span<const std::string_view> Activations();

}  // namespace dt::scheduler
