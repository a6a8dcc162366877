// What is known of an operator without running it: shapes, gradient, sharding rule, cost. The
// scheduler links these only; kernels are in ops/kernel.h's table.
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

// Gives the outputs of one node their dtype and shape. Errors are sentences without line; the pass
// adds node, file and line.
struct InferContext {
  const Graph& graph;
  const Node& node;
  std::vector<Value> outputs;  // Assigned by infer, whole: dtype and shape of each output.

  const Value& in(size_t i) const { return graph.value(node.inputs[i]); }
  size_t in_count() const { return node.inputs.size(); }
  std::string shape_text(size_t i) const { return ShapeText(graph, in(i).shape); }
};

// Writes the gradient of one node as nodes. Given: the gradient of each output (kNone where none
// reaches it).
class GradientContext {
 public:
  virtual ~GradientContext() = default;
  virtual const Graph& graph() const = 0;
  virtual const Node& node() const = 0;
  virtual ValueIndex output_grad(size_t i) const = 0;
  virtual bool needs_grad(size_t input) const = 0;
  // Adds a gradient node "<node>.grad[.k]" with inferred outputs; returns them.
  virtual std::vector<ValueIndex> Add(std::string_view op, std::vector<ValueIndex> inputs,
                                      Attrs attrs, size_t outputs) = 0;
  std::vector<ValueIndex> Add(std::string_view op, std::vector<ValueIndex> inputs, Attrs attrs) {
    return Add(op, std::move(inputs), std::move(attrs), 1);
  }
  virtual void SetInputGrad(size_t input, ValueIndex grad) = 0;
};

// How a node may be cut over devices: a text in the notation of ops/sharding.h, or a function that
// gives it where it depends on attributes or shapes.
struct ShardingRule {
  std::string_view loops = {};
  std::string (*derive)(const Graph& graph, const Node& node) = nullptr;
};

// For one slice of `batch` samples.
struct OpCost {
  double flops = 0;
  double bytes = 0;
};

// An attribute that a job file may give, or that gradient and passes write.
enum class AttrType : uint8_t { kBool, kInt, kFloat, kText, kInts };
struct AttrSpec {
  std::string_view name;
  AttrType type = AttrType::kInt;  // kFloat takes an integer too; kInts takes a single one.
  bool required = false;
};

// What becomes of an operator's tensors in a model that multiplies in bf16 (attribute `math`).
struct Bf16Traits {
  InputSet rounded = {};  // Inputs that may hold bf16 with math: bf16, which rounds them anyway.
  InputSet signs = {};    // Inputs that may always hold bf16, because only their sign is read.
  bool result = false;    // With math: bf16 the attribute `narrow` makes output 0 bf16.
};

// The running values of an operator that keeps some: at the end of a step a node of operator `op`
// changes them in place. Its inputs are the operator's inputs `values`, then its outputs
// `statistics`, each gathered over the step's slices; its attributes are the operator's own.
struct RunningValues {
  std::string_view op = {};  // Empty: the operator keeps nothing.
  std::span<const size_t> values = {};
  std::span<const size_t> statistics = {};
};

// The number of outputs is what infer gives.
inline constexpr uint8_t kVariableOutputs = 255;

struct OpSpec {
  std::string_view name;
  uint8_t outputs = 1;
  Status (*infer)(InferContext& context) = nullptr;
  Status (*gradient)(GradientContext& context) = nullptr;  // nullptr: no gradient flows through.
  OpCost (*cost)(const Graph& graph, const Node& node,
                 int64_t batch) = nullptr;  // nullptr: bytes moved.
  ShardingRule sharding = {};               // Every operator has one.
  bool user_visible = true;                 // May be written in a job file.
  bool takes_bf16 = false;                  // Kernels of processors read values in bf16, too.
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
