// The graph: nodes (operators) and values (tensors) between them. One graph holds forward,
// backward, communication and optimizer nodes. A plain value: copied, compared and serialised;
// passes are functions Graph → Graph. Nodes stand in a topological order: a node's inputs are
// produced before it.
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

// A dimension is a constant (symbol kConstant) or a symbol times a constant. Symbols: B, the
// samples of this slice; N.<lookup>, the ids of a ragged lookup; U.<table>, the distinct keys of a
// table; of a table on the worker S.<table>, the distinct keys of a step that is joined, and
// R.<table>, the rows that it has room for.
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

// What a value is to the executor. Everything but kNode comes from outside the graph.
enum class ValueKind : uint8_t {
  kNode,       // Output of a node.
  kInput,      // Bound for each slice: columns, lookup indices (see InputSpec).
  kParameter,  // Dense weights: live as long as the job.
  kState,      // Optimizer state, batch-norm running values: as parameters, without a gradient.
  kReplica,    // A parameter or state on another device: lives as long; `refresh` nodes write it.
  kTable,      // A table on the worker: its rows with their state, f32 [R.<table>, dim + state].
};

// A slice node runs once for each batch slice, a step node once per step, after every slice.
enum class Phase : uint8_t { kSlice, kStep };

struct Value {
  std::string name;
  DType dtype = DType::kF32;
  SymShape shape;
  ValueKind kind = ValueKind::kNode;
  NodeIndex producer = kNone;
  Device device = Device::kCpu;  // Where it lies: kCpu or kGpu.
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
  NodeIndex forward = kNone;  // Of a gradient node: the node it differentiates.
  SourceMark mark;            // Where the user wrote it, or the composite it comes from.
  DT_FIELDS(name, op, attrs, inputs, outputs, device, phase, stage, forward, mark)
  friend bool operator==(const Node&, const Node&) = default;
};

// Where a kInput value comes from.
enum class InputKind : uint8_t {
  kFloats,         // Float columns `columns`, concatenated: [B, columns].
  kLabel,          // Label column: [B, 1].
  kSampleWeight,   // [B, 1]
  kLookupIndex,    // u32 [B × L] or [N.<lookup>]: position of each id's row in the table's pulled
                   // rows.
  kLookupWeights,  // f32, as the index: the ids' values.
  kLookupEnds,     // u32 [B]: ragged only; ids of sample b are [ends[b-1], ends[b]).
  kRowEnds,        // u32 [U.<table>]: occurrences of row u are order[ends[u-1] .. ends[u]) …
  kRowOrder,       // u32, as the index: … positions in the index, ascending for each row.
  kRows,           // f32 [U.<table>, dim]: pulled rows.
  kRowNumbers,     // u32 [U.<table>]: where in a table on the worker the distinct keys' rows are.
  kRowGaps,        // u32 [U.<table>]: steps since each of these rows was last updated.
};

struct InputSpec {
  ValueIndex value = kNone;
  InputKind kind = InputKind::kFloats;
  std::vector<uint32_t> columns;  // Indices into Plan::columns, for the column kinds.
  uint32_t lookup = kNone;        // Index into Graph::lookups, for the lookup kinds.
  uint32_t table = kNone;         // Index into Graph::tables, for kRows, kRowNumbers, kRowGaps.
  DT_FIELDS(value, kind, columns, lookup, table)
  friend bool operator==(const InputSpec&, const InputSpec&) = default;
};

// One use of a table: the key columns it reads, side by side for each sample.
struct LookupSpec {
  std::string name;
  uint32_t table = kNone;
  std::vector<uint32_t> columns;  // A ragged lookup has exactly one.
  uint32_t length = 0;            // Ids per sample; 0 = ragged.
  bool weighted = false;
  DT_FIELDS(name, table, columns, length, weighted)
  friend bool operator==(const LookupSpec&, const LookupSpec&) = default;
};

struct TableUse {
  std::string name;
  TableId id;
  uint32_t dim = 0;
  uint64_t keys_end = 0;       // Keys are below it; 0: any are.
  uint64_t expected_rows = 0;  // keys_end, or as far as is known of an open table; 0: unknown.
  // kRows input; of a table on the worker what a node takes from `store`.
  ValueIndex rows = kNone;
  // Pushed; kNone before differentiation, if no gradient reaches it, or if the worker updates.
  ValueIndex row_grad = kNone;
  ValueIndex store = kNone;  // kTable value; kNone: the rows are on servers.
  DT_FIELDS(name, id, dim, keys_end, expected_rows, rows, row_grad, store)
  friend bool operator==(const TableUse&, const TableUse&) = default;
};

struct ParameterSpec {
  ValueIndex value = kNone;
  InitSpec init;
  int64_t fan_in = 0, fan_out = 0;  // Of Xavier.
  bool trained = true;              // false: batch-norm running values and optimizer state.
  ValueIndex grad = kNone;  // Of one slice; kNone before differentiation or if none reaches it.
  // Of the step, as it is pushed; kNone if workers update the parameter themselves.
  ValueIndex pushed = kNone;
  DT_FIELDS(value, init, fan_in, fan_out, trained, grad, pushed)
  friend bool operator==(const ParameterSpec&, const ParameterSpec&) = default;
};

struct ReplicaSpec {
  ValueIndex value = kNone;
  ValueIndex of = kNone;  // A kParameter or kState value of the same shape on another device.
  DT_FIELDS(value, of)
  friend bool operator==(const ReplicaSpec&, const ReplicaSpec&) = default;
};

struct LossSpec {
  std::string name;  // Column of predictions.
  std::string type;  // As LossConfig's.
  // [B, 1] logits, or the predicted value; [B, classes] logits; of in_batch_softmax its second
  // output.
  ValueIndex output = kNone;
  ValueIndex label = kNone;  // kLabel input; kNone: in_batch_softmax without labels.
  ValueIndex loss = kNone;   // [1]: this slice's part of the mean over the step's samples.
  uint32_t label_column = kNone;
  float weight = 1;  // In the sum of losses.
  DT_FIELDS(name, type, output, label, loss, label_column, weight)
  friend bool operator==(const LossSpec&, const LossSpec&) = default;
};

struct Graph {
  std::vector<std::string> symbols = {"1", "B"};
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<InputSpec> inputs;
  std::vector<ParameterSpec> parameters;  // kParameter and kState values, in creation order.
  std::vector<ReplicaSpec> replicas;
  std::vector<TableUse> tables;
  std::vector<LookupSpec> lookups;
  std::vector<LossSpec> losses;
  DT_FIELDS(symbols, values, nodes, inputs, parameters, replicas, tables, lookups, losses)
  friend bool operator==(const Graph&, const Graph&) = default;

  const Value& value(ValueIndex i) const { return values[i]; }
  ValueIndex AddValue(Value value);
  // Appends the node and its output values ("<node>:<i>", or "<node>" for a single one).
  NodeIndex AddNode(Node node, size_t outputs);
  SymbolIndex SymbolNamed(const std::string& name);  // Added if new.
};

// Attribute access with a default; a wrong type is our bug (expand has checked the user's
// attributes).
int64_t IntAttr(const Attrs& attrs, std::string_view name, int64_t fallback);
double FloatAttr(const Attrs& attrs, std::string_view name, double fallback);
bool BoolAttr(const Attrs& attrs, std::string_view name, bool fallback);
std::string TextAttr(const Attrs& attrs, std::string_view name, const std::string& fallback);
std::vector<int64_t> IntsAttr(const Attrs& attrs, std::string_view name);

// "[B, 26, 16]"
std::string ShapeText(const Graph& graph, const SymShape& shape);
// One line a node, for people and for golden tests.
std::string NodeText(const Graph& graph, const Node& node);
std::string DumpText(const Graph& graph);
std::string DumpDot(const Graph& graph);
std::string DumpJson(const Graph& graph);
// Structure: indices in range, order topological, every value produced once. Error: Internal.
Status CheckGraph(const Graph& graph);

}  // namespace dt
