// From the strategy of a node to the layouts of its inputs and outputs. Pure functions of sharding
// rules.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/layout/layout.h"
#include "common/specs/strategy.h"
#include "ops/sharding.h"

namespace dt::scheduler {

// How the loops of a node are cut. Along an axis that cuts no loop all devices compute the same.
struct NodeCut {
  DeviceMatrix matrix;
  std::vector<AxisList> loops;  // By loop of the rule: the axes that cut it, the outer one first.
  friend bool operator==(const NodeCut&, const NodeCut&) = default;
};

// Why a strategy, or the layouts of inputs, cannot be used.
struct CutProblem {
  std::string rule;  // One word: inputs, dimensions, parts, whole, agree, devices, linear.
  std::string what;  // A sentence.
};

// The device matrix has an axis for each loop that may be cut, in the order of the rule. If the
// node uses fewer devices, the rest is one more axis: the first one for tables that are cut, and
// with `copies_first`; else the last one.
std::variant<NodeCut, CutProblem> CutOf(const Sharding& rule, const Strategy& strategy,
                                        uint32_t devices, bool copies_first = false);
// The same from the number of parts of each loop. REQUIRES: they divide the devices.
NodeCut CutOfParts(const Sharding& rule, const std::vector<uint32_t>& parts, uint32_t devices,
                   bool copies_first = false);
// The rule as if every loop could be cut: that of a node that is written by parts.
Sharding WithAllCuts(Sharding rule);
// The strategy from which CutOf makes this cut. REQUIRES: at most one axis for a loop.
Strategy StrategyOf(const Sharding& rule, const NodeCut& cut);

// Every number of parts for each loop such that their product divides `devices` and no constant
// loop has more parts than iterations; in lexicographic order.
std::vector<std::vector<uint32_t>> AllParts(const Sharding& rule, uint32_t devices);
// The valid strategy that differs least from a wrong one, by the sum of differences of logarithms
// of parts. Among equals the one with most parts, then the first in the order of AllParts.
std::optional<Strategy> NearestStrategy(const Sharding& rule, const Strategy& wrong,
                                        uint32_t devices);

// The same cut over a matrix whose axes are those of the cut's matrix, some of them divided.
// Nothing if an axis that cuts a loop is divided, since parts may be uneven.
std::optional<NodeCut> InMatrix(const NodeCut& cut, const DeviceMatrix& finer);

struct NodeLayouts {
  std::vector<Layout> inputs, outputs;
};
// The layouts that a cut needs and gives. Dimensions that hold lists or own rows are cut over the
// axes of the loops that they follow; how long the parts are is known only when the node runs.
NodeLayouts LayoutsOf(const Sharding& rule, const NodeCut& cut);

// The cut of a node whose inputs lie as given, and the axes over which they, and so the outputs,
// are partial sums.
struct HeldCut {
  NodeCut cut;
  AxisList partial;
};
// nullptr: an input, or output, that lies as the others need it. REQUIRES: each layout has the
// dimensions of its tensor; at least one is given; outputs are not partial.
struct KnownLayouts {
  std::vector<const Layout*> inputs, outputs;
};
std::variant<HeldCut, CutProblem> CutOfLayouts(const Sharding& rule, const KnownLayouts& known);

// LayoutsOf, with the partial sums that inputs bring.
NodeLayouts LayoutsOf(const Sharding& rule, const HeldCut& held);

// The layout of an output that the strategy `out` asks for: one number of parts for each dimension.
// Dimensions keep their cut, and are cut further over partial axes, else over axes of copies.
std::variant<Layout, CutProblem> OutLayout(const Layout& made, const std::vector<DimParts>& out);

// By input: the axes over which its gradient is a partial sum, because devices along them have the
// same part of the input and use it for different parts of the loops. Empty for inputs without a
// gradient (positions, ends of lists, uses of rows).
std::vector<AxisList> GradientAxes(const Sharding& rule, const NodeCut& cut);

}  // namespace dt::scheduler
