// How one operator may be cut over devices. A rule names the loops of the operator's arithmetic, as
// an einsum does, and says along which dimensions of its inputs and outputs each runs; the rest
// follows. A loop that is cut gives each device a range of it. A tensor that has the loop is cut
// along it; an input without it is on every device whole, and its gradient is a partial sum; an
// output without it is a partial sum. A device matrix has one axis for each loop that is cut, and
// the tensor map of a tensor is the axes of its loops on it (docs/architecture.md, "How operators
// may be cut").
//
// The text of a rule: terms of inputs, "->", terms of outputs; "|" and terms of attributes that
// count positions, as in "bf(hd)->bhfd|heads=h". In a term each dimension is
//   k      a loop that may be cut; the same letter is the same loop everywhere
//   K      one that is not: every device has it whole
//   1 .    a dimension that is whole, and not that of another tensor
//   (lk)   loops whose product is the dimension, the outer one first
//   b'     lists, one behind the other: those of positions b; an input ^b has their ends
//   * ~    all dimensions that the term does not name: loops to be cut; whole
// Before a term: ^ ends of lists; @ the uses of rows, made anew for each device's positions; before
// an output: "mean" and "max" (instead of a sum), "same" (a cut elsewhere changes nothing).
// Inputs at the end may be missing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/graph/graph.h"

namespace dt {

// What devices have of an output that lacks a loop that is cut.
enum class Join : uint8_t { kSum, kMean, kMax, kSame };
// What an input holds.
enum class Holds : uint8_t { kValues, kListEnds, kRowUses };

struct ShardLoop {
  std::string name;
  Dim extent;
  bool cut = false;  // May be.
};

struct ShardAxis {
  std::vector<uint8_t> loops;  // Indices, the outer one first; none: every device has it whole.
  bool lists = false;          // Lists of these positions.
};

struct ShardTensor {
  std::vector<ShardAxis> axes;
  Holds holds = Holds::kValues;  // Of inputs.
  Join join = Join::kSum;        // Of outputs.
  bool Has(uint8_t loop) const;
};

// Number `at` of an attribute counts positions of the axis.
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

// The rule's text for this node. REQUIRES: its operator is known.
std::string LoopsOf(const Graph& graph, const Node& node);
// Error: Internal, if the rule does not fit the node's shapes.
Result<Sharding> ShardingOf(const Graph& graph, const Node& node);

}  // namespace dt
