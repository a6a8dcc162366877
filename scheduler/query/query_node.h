// A node of a question: an operator, or a rule for an operator that does not exist here.
#pragma once

#include <string>
#include <vector>

#include "scheduler/query/query_json.h"

namespace dt::scheduler {

struct QueryNode {
  Node as_node;  // Operator and attributes; without an operator for a rule.
  Sharding rule;
  std::vector<SymShape> inputs, outputs;
};

// Reads "op" or "loops", and "attrs". Inputs may have the symbol B in place of a constant; the rule
// decides which inputs are positions, so their types are not part of the question.
// Throws QueryError: rule "operator", "attrs" or "shapes".
QueryNode ReadNode(const Json& question, std::vector<SymShape> inputs);

// The numbers of a shape, with `batch` samples.
Shape NumbersOf(const SymShape& shape, int64_t batch);

// {"device_matrix", "inputs", "outputs", "communication", "gradient_groups"}
struct NodeView {
  const QueryNode& node;
  const NodeCut& cut;
  const NodeLayouts& layouts;
  int64_t batch = 1;
  DeviceIndex device = 0;
};
Json NodeJson(const NodeView& view);

}  // namespace dt::scheduler
