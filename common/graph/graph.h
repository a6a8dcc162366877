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
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/device/tensor.h"
#include "common/specs/attrs.h"
#include "common/specs/device_tag.h"
#include "common/specs/init.h"
#include "common/specs/source_mark.h"

namespace dt {

using ValueIndex = uint32_t;
using NodeIndex = uint32_t;
inline constexpr uint32_t kNone = ~uint32_t{0};

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

// The source of a kInput value.
enum class InputKind : uint8_t {
  kFloats,         // Float columns `columns`, concatenated: [B, columns].
  kLabel,          // Label column: [B, 1].
  kSampleWeight,   // [B, 1]
  kLookupIndex,    // u32 [B × L] or [N.<lookup>]: position of each id's row in the table's pulled
                   // rows.
  kLookupWeights,  // f32, the shape of kLookupIndex: the ids' values.
  kLookupEnds,     // u32 [B], ragged only: the ids of sample b are [ends[b-1], ends[b]).
  kRowEnds,        // u32 [U.<table>]: row u occurs at order[ends[u-1]] … order[ends[u] - 1].
  // u32, the size of kLookupIndex: positions in the index, grouped by row and ascending for each
  // row.
  kRowOrder,
  kRows,  // f32 [U.<table>, dim]: pulled rows.
  // u32 [U.<table>]: the positions of the distinct keys' rows in a table on the worker.
  kRowNumbers,
  kStepsSinceUpdate,  // u32 [U.<table>]: steps since the last update of each of these rows.
};

struct InputSpec {
  ValueIndex value = kNone;
  InputKind kind = InputKind::kFloats;
  std::vector<uint32_t> columns;  // Indices into Plan::columns, for the column kinds.
  uint32_t lookup = kNone;        // Index into Graph::lookups, for the lookup kinds.
  uint32_t table = kNone;  // Index into Graph::tables, for kRows, kRowNumbers, kStepsSinceUpdate.
  DT_FIELDS(value, kind, columns, lookup, table)
  friend bool operator==(const InputSpec&, const InputSpec&) = default;
};

// One use of a table: the key columns that it reads, concatenated for each sample.
struct LookupSpec {
  std::string name;
  uint32_t table = kNone;
  std::vector<uint32_t> columns;  // A ragged lookup has exactly one.
  uint32_t length = 0;            // Ids per sample; 0 = ragged.
  bool weighted = false;
  DT_FIELDS(name, table, columns, length, weighted)
  friend bool operator==(const LookupSpec&, const LookupSpec&) = default;
};

// A table of the model, as the graph uses it.
struct TableUse {
  std::string name;
  TableId id;
  uint32_t dim = 0;
  uint64_t keys_end = 0;  // All keys are below it; 0: keys may have any value.
  // keys_end, or a hint for an open table; 0: unknown.
  uint64_t expected_rows = 0;
  // A kRows input; for a table on the worker, the output of a node that reads `store`.
  ValueIndex rows = kNone;
  // The gradient that is pushed. kNone before differentiation, if no gradient reaches the table, or
  // if the worker updates the table itself.
  ValueIndex row_grad = kNone;
  ValueIndex store = kNone;  // A kTable value; kNone: the rows are on servers.
  DT_FIELDS(name, id, dim, keys_end, expected_rows, rows, row_grad, store)
  friend bool operator==(const TableUse&, const TableUse&) = default;
};

struct ParameterSpec {
  ValueIndex value = kNone;
  InitSpec init;
  int64_t fan_in = 0, fan_out = 0;  // For the Xavier initialisers.
  bool trained = true;              // False for batch-norm running values and optimizer state.
  // The gradient of one slice; kNone before differentiation, or if no gradient reaches it.
  ValueIndex grad = kNone;
  // The gradient of the step, as it is pushed; kNone if workers update the parameter themselves.
  ValueIndex pushed = kNone;
  // In a team a device may hold a part of the parameter: `whole` is the parameter's shape, and
  // `first` the position of the part's first element. Empty: all of it.
  Shape whole, first;
  bool copy = false;  // A worker before this one in the team has the same elements.
  DT_FIELDS(value, init, fan_in, fan_out, trained, grad, pushed, whole, first, copy)
  friend bool operator==(const ParameterSpec&, const ParameterSpec&) = default;
};

struct ReplicaSpec {
  ValueIndex value = kNone;
  // A kParameter or kState value of the same shape on another device.
  ValueIndex of = kNone;
  DT_FIELDS(value, of)
  friend bool operator==(const ReplicaSpec&, const ReplicaSpec&) = default;
};

// Several workers have the same elements of a parameter, and each updates some rows of them: part
// m of the rows, divided evenly, where m is its number among these workers. It has the optimizer's
// state of its rows only.
struct PartSpec {
  ValueIndex value = kNone;    // kPart: [O.<parameter>, …].
  ValueIndex of = kNone;       // The parameter.
  std::vector<int64_t> group;  // The positions of a team that have it; empty in teams of one.
  DT_FIELDS(value, of, group)
  friend bool operator==(const PartSpec&, const PartSpec&) = default;
};

struct LossSpec {
  std::string name;  // Name of the column of predictions.
  std::string type;  // Like LossConfig::type.
  // [B, 1]: logits, or the predicted value. [B, classes]: logits. For in_batch_softmax, the second
  // output of the loss node.
  ValueIndex output = kNone;
  ValueIndex label = kNone;  // A kLabel input; kNone: in_batch_softmax without labels.
  ValueIndex loss = kNone;   // [1]: this slice's share of the mean over the step's samples.
  uint32_t label_column = kNone;
  float weight = 1;  // Factor in the sum of losses.
  DT_FIELDS(name, type, output, label, loss, label_column, weight)
  friend bool operator==(const LossSpec&, const LossSpec&) = default;
};

struct Graph {
  std::vector<std::string> symbols = {"1", "B"};
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<InputSpec> inputs;
  std::vector<ParameterSpec> parameters;  // For kParameter and kState values, in creation order.
  std::vector<ReplicaSpec> replicas;
  std::vector<PartSpec> parts;
  std::vector<TableUse> tables;
  std::vector<LookupSpec> lookups;
  std::vector<LossSpec> losses;
  DT_FIELDS(symbols, values, nodes, inputs, parameters, replicas, parts, tables, lookups, losses)
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
