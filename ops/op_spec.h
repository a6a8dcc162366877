// Specifications of operators: shapes, gradient, sharding rule and cost. The scheduler links only
// these; kernels are found through ops/kernel.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/graph/op_traits.h"

namespace dt {

// Computes dtype and shape of a node's outputs. Errors are sentences without a source line; the
// pass adds node, file and line.
struct InferContext {
  const Graph& graph;
  const Node& node;
  std::vector<Value> outputs;  // Set by infer: dtype and shape of each output.

  const Value& in(size_t i) const { return graph.value(node.inputs[i]); }
  size_t in_count() const { return node.inputs.size(); }
  std::string shape_text(size_t i) const { return ShapeText(graph, in(i).shape); }
};

// Writes the gradient of one node as nodes, from the gradients of its outputs (kNone for an output
// without a gradient).
class GradientContext {
 public:
  virtual ~GradientContext() = default;
  virtual const Graph& graph() const = 0;
  virtual const Node& node() const = 0;
  virtual ValueIndex output_grad(size_t i) const = 0;
  virtual bool needs_grad(size_t input) const = 0;
  // Adds a gradient node "<node>.grad[.k]", infers its outputs and returns them.
  virtual std::vector<ValueIndex> Add(std::string_view op, std::vector<ValueIndex> inputs,
                                      Attrs attrs, size_t outputs) = 0;
  std::vector<ValueIndex> Add(std::string_view op, std::vector<ValueIndex> inputs, Attrs attrs) {
    return Add(op, std::move(inputs), std::move(attrs), 1);
  }
  virtual void SetInputGrad(size_t input, ValueIndex grad) = 0;
};

// Writes a node as several that compute the same, so that a loop can be cut whose reduction is
// inside of the operator.
class PartsContext {
 public:
  virtual ~PartsContext() = default;
  virtual const Graph& graph() const = 0;
  virtual const Node& node() const = 0;
  // In how many parts a dimension of an input is cut.
  virtual int64_t parts_of(size_t input, size_t dim) const = 0;
  // Adds a node "<node>.<op>", infers its outputs and returns the first one; others follow it.
  virtual ValueIndex Add(std::string_view op, std::vector<ValueIndex> inputs, Attrs attrs) = 0;
  ValueIndex Add(std::string_view op, std::vector<ValueIndex> inputs) {
    return Add(op, std::move(inputs), {});
  }
  // Adds a node whose outputs are those of this node but the first one.
  virtual void AddOtherOutputs(std::string_view op, std::vector<ValueIndex> inputs,
                               Attrs attrs) = 0;
};

// How a node may be cut over devices: a text in the notation of ops/sharding.h, or a function that
// returns it if it depends on attributes or shapes.
struct ShardingRule {
  std::string_view loops = {};
  std::string (*derive)(const Graph& graph, const Node& node) = nullptr;
  // The marks & and + of `derive`'s inputs, or "." for none; the last one is repeated.
  std::string_view linear = {};
};

// The cost for one slice of `batch` samples.
struct OpCost {
  double flops = 0;
  double bytes = 0;
};

// An attribute that a job file may set, or that gradients and passes set.
enum class AttrType : uint8_t { kBool, kInt, kFloat, kText, kInts };
struct AttrSpec {
  std::string_view name;
  AttrType type = AttrType::kInt;  // kFloat accepts an integer, and kInts a single number.
  bool required = false;
};

// How an operator treats tensors in bf16, if the model multiplies in bf16 (attribute `math`).
struct Bf16Traits {
  // With math: bf16 these inputs may be bf16, since the operator rounds them anyway.
  InputSet rounded = {};
  InputSet signs = {};  // These inputs may always be bf16, since only their sign is read.
  bool result = false;  // With math: bf16 the attribute `bf16_output` makes output 0 bf16.
};

// Running values of an operator. At the end of a step a node of operator `op` updates them in
// place. Its inputs are the operator's inputs `values`, then its outputs `statistics`, each
// gathered over the step's slices; its attributes are the operator's.
struct RunningValues {
  std::string_view op = {};  // Empty if the operator has no running values.
  std::span<const size_t> values = {};
  std::span<const size_t> statistics = {};
};

// For OpSpec::outputs: infer decides the number of outputs.
inline constexpr uint8_t kVariableOutputs = 255;

struct OpSpec {
  std::string_view name;
  uint8_t outputs = 1;
  Status (*infer)(InferContext& context) = nullptr;
  Status (*gradient)(GradientContext& context) = nullptr;  // nullptr: no gradient flows through.
  // The last call of Add makes the node's first outputs. nullptr: the node stays as it is.
  void (*by_parts)(PartsContext& context) = nullptr;
  // nullptr: the cost is the bytes that are read and written.
  OpCost (*cost)(const Graph& graph, const Node& node, int64_t batch) = nullptr;
  ShardingRule sharding = {};
  bool user_visible = true;  // May be written in a job file.
  bool takes_bf16 = false;   // The CPU kernels also read inputs in bf16.
  std::span<const AttrSpec> attrs = {};
  OpTraits traits = {};
  Bf16Traits bf16 = {};
  RunningValues running = {};

  bool TakesAttr(std::string_view attr) const;
};

// Every operator, sorted by name.
std::span<const OpSpec* const> AllOps();
// nullptr if there is none.
const OpSpec* FindOp(std::string_view name);
// The operator's traits; those of a plain operator if there is none of this name.
OpTraits TraitsOf(std::string_view op);

}  // namespace dt
