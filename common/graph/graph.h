// The graph: nodes (operators) and the values (tensors) between them. One graph contains forward,
// backward, communication and optimizer nodes. It is a plain value that can be copied, compared and
// serialised; passes are functions Graph → Graph. Nodes are in a topological order: a node's inputs
// are produced before it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/fields.h"
#include "common/base/status.h"
#include "common/device/tensor.h"
#include "common/graph/graph_specs.h"
#include "common/specs/attrs.h"
#include "common/specs/device_tag.h"
#include "common/specs/source_mark.h"

namespace dt {

// A dimension is a constant (symbol kConstant) or a symbol times a constant. The symbols: B, the
// samples of this slice; B/<k>s<s>, the part of them that a device of a team has
// (common/layout/sample_part.h); N.<lookup>, the ids of a ragged lookup; U.<table>, the distinct
// keys of a table. A table on the worker also has S.<table>, the distinct keys in the whole step,
// and R.<table>, the number of rows for which it has room. O.<parameter>: the rows of a parameter
// that this worker updates.
using SymbolIndex = uint32_t;
inline constexpr SymbolIndex kConstant = 0;
inline constexpr SymbolIndex kBatch = 1;
struct Dim {
  SymbolIndex symbol = kConstant;
  int64_t times = 1;
  DT_FIELDS(symbol, times)
  friend bool operator==(const Dim&, const Dim&) = default;
};
using SymShape = std::vector<Dim>;
inline Dim Const(int64_t n) { return {kConstant, n}; }

// How the executor gets a value. All kinds except kNode come from outside the graph.
enum class ValueKind : uint8_t {
  kNode,       // Output of a node.
  kInput,      // Bound for each slice: columns, lookup indices (see InputSpec).
  kParameter,  // Dense weights, which live as long as the job.
  kState,  // Optimizer state and batch-norm running values: like parameters, without a gradient.
  // A copy of a parameter or state on another device, written by `refresh` nodes; lives as long.
  kReplica,
  kPart,   // Rows of a parameter that this worker updates, in the parameter's memory.
  kTable,  // A table on the worker: rows with their state, f32 [R.<table>, dim + state].
};

// A slice node runs once for each slice of the batch. The others run once per step: a join combines
// what all slices leave behind, and begins when what it reads is there; step nodes run after all
// slices and joins.
enum class Phase : uint8_t { kSlice, kJoin, kStep };
constexpr std::string_view NameOf(Phase phase) {
  return phase == Phase::kSlice ? "slice" : phase == Phase::kJoin ? "join" : "step";
}
// Successive phases.
struct Phases {
  Phase first = Phase::kSlice, last = Phase::kSlice;
  constexpr bool Has(Phase phase) const { return first <= phase && phase <= last; }
};
inline constexpr Phases kSlices{}, kSlicesAndJoins{Phase::kSlice, Phase::kJoin};
inline constexpr Phases kJoins{Phase::kJoin, Phase::kJoin}, kSteps{Phase::kStep, Phase::kStep};

struct Value {
  std::string name;
  DType dtype = DType::kF32;
  SymShape shape;
  ValueKind kind = ValueKind::kNode;
  NodeIndex producer = kNone;
  Device device = Device::kCpu;  // The device that stores it: kCpu or kGpu.
  DT_FIELDS(name, dtype, shape, kind, producer, device)
  friend bool operator==(const Value&, const Value&) = default;
};

struct Node {
  std::string name;
  std::string op;
  Attrs attrs;
  std::vector<ValueIndex> inputs;
  std::vector<ValueIndex> outputs;
  Device device = Device::kAuto;
  Phase phase = Phase::kSlice;
  uint32_t stage = 0;
  NodeIndex forward = kNone;  // For a gradient node: the node that it differentiates.
  SourceMark mark;            // Where the user wrote the node, or the composite that it comes from.
  DT_FIELDS(name, op, attrs, inputs, outputs, device, phase, stage, forward, mark)
  friend bool operator==(const Node&, const Node&) = default;
};

struct Graph {
  std::vector<std::string> symbols = {"1", "B"};
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<InputSpec> inputs;
  std::vector<ParameterSpec> parameters;  // For kParameter and kState values, in creation order.
  std::vector<ReplicaSpec> replicas;
  std::vector<PartSpec> parts;
  std::vector<GroupSpec> groups;  // Communication nodes name them by attributes.
  std::vector<TableUse> tables;
  std::vector<LookupSpec> lookups;
  std::vector<LossSpec> losses;
  DT_FIELDS(symbols, values, nodes, inputs, parameters, replicas, parts, groups, tables, lookups,
            losses)
  friend bool operator==(const Graph&, const Graph&) = default;

  const Value& value(ValueIndex i) const { return values[i]; }
  ValueIndex AddValue(Value value);
  // Appends the node and its output values ("<node>:<i>", or "<node>" for a single one).
  NodeIndex AddNode(Node node, size_t outputs);
  SymbolIndex SymbolNamed(const std::string& name);  // Adds the symbol if it is new.
};

// Return an attribute, or `fallback` if it is absent. A wrong type is our bug, because the
// expansion of composites has checked the user's attributes.
int64_t IntAttr(const Attrs& attrs, std::string_view name, int64_t fallback);
double FloatAttr(const Attrs& attrs, std::string_view name, double fallback);
bool BoolAttr(const Attrs& attrs, std::string_view name, bool fallback);
std::string TextAttr(const Attrs& attrs, std::string_view name, const std::string& fallback);
std::vector<int64_t> IntsAttr(const Attrs& attrs, std::string_view name);

// "[B, 26, 16]"
std::string ShapeText(const Graph& graph, const SymShape& shape);
// One line per node, for people and for golden tests.
std::string NodeText(const Graph& graph, const Node& node);
std::string DumpText(const Graph& graph);
std::string DumpDot(const Graph& graph);
std::string DumpJson(const Graph& graph);
// Checks the structure: indices are in range, the order is topological, every value is produced
// once. Error: Internal.
Status CheckGraph(const Graph& graph);

}  // namespace dt
