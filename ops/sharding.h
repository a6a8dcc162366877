// How an operator may be cut over devices. A rule names the loops of the operator's arithmetic, as
// an einsum does, and says which dimensions of inputs and outputs each loop runs along. A loop that
// is cut gives each device a range of its iterations. A tensor with this loop is cut along it. An
// input without it is whole on every device, and its gradient is a partial sum; an output without
// it is a partial sum. A device matrix has one axis for each loop that is cut, and the tensor map
// of a tensor is the axes of its loops on it (docs/architecture.md, "How operators may be cut").
//
// A rule is the terms of the inputs, "->", and the terms of the outputs. Attributes that count
// positions follow after "|", as in "bf(hd)->bhfd|heads=h". In a term each dimension is one of
//   k      a loop that may be cut; the same letter is the same loop everywhere
//   K      a loop that is not cut: every device has it whole
//   1 .    a whole dimension that no other tensor shares
//   (lk)   several loops whose product is the dimension, the outer one first
//   b'     lists stored one behind the other, one for each position of b; input ^b has the ends
//   * ~    all dimensions that the term does not name: as loops that may be cut; as whole ones
// Before the term of an input, ^ marks ends of lists, and @ uses of rows, which are computed again
// for each device's positions. Before the term of an output, "mean" and "max" replace the sum, and
// "same" means that every device computes the same output. Trailing inputs may be missing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/graph/graph.h"

namespace dt {

// How the devices' parts of an output are joined if the output lacks a loop that is cut.
enum class Join : uint8_t { kSum, kMean, kMax, kSame };
// The content of an input.
enum class Holds : uint8_t { kValues, kListEnds, kRowUses };

struct ShardLoop {
  std::string name;
  Dim extent;
  bool cut = false;  // Whether it may be cut.
};

struct ShardAxis {
  // Indices of loops, the outer one first; none if every device has the dimension whole.
  std::vector<uint8_t> loops;
  bool lists = false;  // The dimension holds lists, one for each of these positions.
};

struct ShardTensor {
  std::vector<ShardAxis> axes;
  Holds holds = Holds::kValues;  // For inputs.
  Join join = Join::kSum;        // For outputs.
  bool Has(uint8_t loop) const;
};

// Number `at` of the attribute counts positions of the axis.
struct ShardAttr {
  std::string name;
  size_t at = 0;
  ShardAxis axis;
};

struct Sharding {
  std::vector<ShardLoop> loops;
  std::vector<ShardTensor> inputs, outputs;
  std::vector<ShardAttr> attrs;
};

// The rule's text for this node. REQUIRES: the node's operator exists.
std::string LoopsOf(const Graph& graph, const Node& node);
// Errors: Internal, if the rule does not fit the node's shapes.
Result<Sharding> ShardingOf(const Graph& graph, const Node& node);

}  // namespace dt
