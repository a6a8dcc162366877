// How an operator may be cut over devices. A rule names the loops of the operator's arithmetic, as
// an einsum does, and says which dimensions of inputs and outputs each loop runs along. A loop that
// is cut gives each device a range of its iterations. A tensor with this loop is cut along it. An
// input without it is whole on every device, and its gradient is a partial sum; an output without
// it is a partial sum. A device matrix has one axis for each loop that may be cut, and the tensor
// map of a tensor is the axes of its loops on it (docs/architecture.md, "How operators may be
// cut").
//
// A rule is the terms of the inputs, "->", the terms of the outputs, and after "|" what else it
// says, as in "bf(hd)->bhfd|heads=h". In a term each dimension is one of
//   k      a loop that may be cut; the same letter is the same loop everywhere
//   K      a loop that is not cut: every device has it whole
//   1 .    a whole dimension that no other tensor shares
//   (lk)   several loops whose product is the dimension, the outer one first
//   b'     lists stored one behind the other, one for each position of b; input ^b has the ends,
//          or an attribute the lengths (lengths=b')
//   $      own rows: each device has those that its part of the loops uses. They are no copies, and
//          their gradient is no partial sum: it is a contribution of the device
//   * ~    all dimensions that the term does not name: as loops that may be cut; as whole ones
// Before the term of an input,
//   ^      it has the ends of lists
//   @      it has the uses of rows, which are made again for each device's positions
//   #r     it has positions of loop r. A device uses those within its range of r, and takes zeros
//          for the others
//   & +    the operator is linear in this input alone; in all inputs with "+" together. Such inputs
//          may be partial sums, and the outputs then are
// Before the term of an output, "mean" and "max" replace the sum, and "same" means that every
// device computes the same output. Trailing inputs may be missing. After "|", separated by commas,
//   heads=h    the attribute `heads` counts positions of the loop, and shape=b(cd) those of three
//   first=bc   passes add the attribute `first`, where the device's ranges begin, and `whole`, how
//              many positions there are in all
//   order=bkn  the axes of the device matrix, if not in the order in which terms name the loops
//   table=rd   loops of a table. If one is cut, neighbouring devices have its parts: the axis along
//              which devices hold copies is the first one, else it is the last
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/layout/layout.h"

namespace dt {

// The content of an input.
enum class Holds : uint8_t { kValues, kListEnds, kRowUses, kPositions };
// Whether an input may be a partial sum.
enum class Linear : uint8_t { kNo, kAlone, kTogether };

using LoopIndex = uint8_t;

struct ShardLoop {
  std::string name;
  Dim extent;
  bool cut = false;  // Whether it may be cut.
  // Lengths of the lists that dimensions hold for its positions, if an attribute gives them.
  std::vector<int64_t> lists = {};
};

struct ShardAxis {
  // Indices of loops, the outer one first; none if every device has the dimension whole.
  std::vector<LoopIndex> loops;
  bool lists = false;  // The dimension holds lists, one for each of these positions.
  bool own = false;    // The dimension holds own rows.
};

struct ShardTensor {
  std::vector<ShardAxis> axes;
  // For inputs.
  Holds holds = Holds::kValues;
  LoopIndex counted = 0;  // The loop of kPositions.
  Linear linear = Linear::kNo;
  // For outputs: how devices' parts are joined if the output lacks a loop that is cut.
  Join join = Join::kSum;
  bool same = false;  // Every device computes all of it.
  bool Has(LoopIndex loop) const;
  bool HasOwnRows() const;
};

// Number `at` of the attribute counts the positions of the axis that a device has, or is the first
// of them. If the axis holds lists, the attribute has a number for each position.
struct ShardAttr {
  std::string name;
  size_t at = 0;
  ShardAxis axis;
  bool first = false;
};

struct Sharding {
  std::vector<ShardLoop> loops;
  std::vector<ShardTensor> inputs, outputs;
  std::vector<ShardAttr> attrs;
  std::vector<LoopIndex> order;  // The loops that may be cut, in the order of the matrix's axes.
  std::vector<LoopIndex> table;  // The loops of a table.
};

// The rule's text for this node. REQUIRES: the node's operator exists.
std::string LoopsOf(const Graph& graph, const Node& node);
// Loops over ids or rows become lists of samples, since a device has those of its samples.
// Errors: Internal, if the rule does not fit the node's shapes.
Result<Sharding> ShardingOf(const Graph& graph, const Node& node);

// A rule without a graph.
struct ShardingText {
  std::string_view name;  // For errors.
  std::string_view text;
  std::vector<SymShape> inputs;
  // Empty: a dimension of an output is the product of its loops.
  std::vector<SymShape> outputs;
  Attrs attrs;
};
// Also sets the shapes of outputs that are not given. Errors: Internal.
Result<Sharding> ReadSharding(ShardingText& rule);

}  // namespace dt
