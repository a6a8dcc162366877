#include "test/ops/op_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/base/float_formats.h"
#include "common/base/philox.h"

namespace dt::test {
namespace {

uint16_t ToBf16(double value) {
  const float x = static_cast<float>(value);
  std::byte bytes[2];
  EncodeRow(FloatFormat::kBf16, std::span(&x, 1), bytes);
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(uint32_t threads) : pool_(threads) {}
  void Run(const Work& work) override {
    const Kernel kernel = FindKernel(work.node.op);
    DT_CHECK_MSG(kernel != nullptr, "{} has no kernel", work.node.op);
    std::vector<std::byte> scratch(64, std::byte{0xff});
    KernelContext context{work.node, work.inputs, work.outputs, work.run, pool_, scratch};
    kernel(context);
  }

 private:
  TaskPool pool_;
};

// A graph of the case's node and its gradient nodes, and memory for all values.
class Bench : public GradientContext {
 public:
  // With a null back end nothing can be run.
  Bench(const OpCase& c, DType dtype, Backend* backend)
      : case_(c), dtype_(dtype), backend_(backend), sizes_{1} {
    graph_.SymbolNamed("U");
    graph_.SymbolNamed("N");
    for (SymbolIndex s = kBatch; s < graph_.symbols.size(); ++s) sizes_.push_back(c.sizes.at(s));
    Node node;
    node.name = "node";
    node.op = c.op;
    node.attrs = c.attrs;
    for (const CaseInput& input : c.inputs) {
      Value value;
      value.name = "in" + std::to_string(node.inputs.size());
      value.dtype = input.index ? DType::kU32 : dtype;
      value.shape = input.shape;
      value.kind = ValueKind::kInput;
      node.inputs.push_back(graph_.AddValue(value));
      Bind(node.inputs.back(), input.values);
    }
    node_ = node;
  }

  Result<std::vector<Value>> Infer(const Node& node) {
    const OpSpec* spec = FindOp(node.op);
    DT_CHECK_MSG(spec != nullptr, "no operator {}", node.op);
    InferContext context{graph_, node, {}};
    DT_TRY_STATUS(spec->infer(context));
    if (spec->outputs != kVariableOutputs) DT_CHECK(spec->outputs == context.outputs.size());
    return context.outputs;
  }
  Result<std::vector<Value>> Infer() { return Infer(node_); }

  void RunForward() {
    const NodeIndex index = Append(node_);
    node_ = graph_.nodes[index];
    RunNode(index);
  }

  std::vector<Numbers> Gradients(const std::vector<Numbers>& output_grads) {
    for (const ValueIndex v : node_.outputs) {
      Value grad;
      grad.name = "dy";
      grad.dtype = graph_.value(v).dtype;
      grad.shape = graph_.value(v).shape;
      grad.kind = ValueKind::kInput;
      output_grads_.push_back(graph_.AddValue(grad));
      Bind(output_grads_.back(), output_grads[output_grads_.size() - 1]);
    }
    input_grads_.assign(node_.inputs.size(), kNone);
    const Status status = FindOp(node_.op)->gradient(*this);
    DT_CHECK_MSG(status.ok(), "{}", ToText(status));
    for (NodeIndex n = 1; n < graph_.nodes.size(); ++n) RunNode(n);
    std::vector<Numbers> grads(node_.inputs.size());
    for (size_t i = 0; i < grads.size(); ++i) {
      if (input_grads_[i] == kNone) continue;
      DT_CHECK(graph_.value(input_grads_[i]).shape == graph_.value(node_.inputs[i]).shape);
      grads[i] = Read(input_grads_[i]);
    }
    return grads;
  }

  const Graph& graph() const override { return graph_; }
  const Node& node() const override { return node_; }
  ValueIndex output_grad(size_t i) const override { return output_grads_[i]; }
  bool needs_grad(size_t input) const override { return case_.inputs[input].smooth; }
  std::vector<ValueIndex> Add(std::string_view op, std::vector<ValueIndex> inputs, Attrs attrs,
                              size_t outputs) override {
    Node added;
    added.name = "node.grad";
    added.op = op;
    added.inputs = std::move(inputs);
    added.attrs = std::move(attrs);
    const NodeIndex index = Append(std::move(added));
    DT_CHECK(graph_.nodes[index].outputs.size() == outputs);
    return graph_.nodes[index].outputs;
  }
  void SetInputGrad(size_t input, ValueIndex grad) override {
    DT_CHECK(needs_grad(input));
    input_grads_[input] = grad;
  }

  Numbers Read(ValueIndex v) {
    const TensorView view = View(v);
    Numbers numbers(static_cast<size_t>(view.size()));
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (view.dtype == DType::kF32) numbers[i] = view.as<float>()[i];
      if (view.dtype == DType::kF64) numbers[i] = view.as<double>()[i];
      if (view.dtype == DType::kU32) numbers[i] = view.as<uint32_t>()[i];
      if (view.dtype == DType::kBf16) numbers[i] = FromBf16(static_cast<uint16_t*>(view.data)[i]);
    }
    return numbers;
  }
  TensorView View(ValueIndex v) {
    const Value& value = graph_.value(v);
    TensorView view{value.dtype, ShapeIn(case_, value.shape), nullptr};
    std::vector<double>& memory = memory_[v];
    if (memory.empty()) {
      memory.assign(view.bytes() / 8 + 1, std::numeric_limits<double>::quiet_NaN());
    }
    view.data = memory.data();
    return view;
  }

 private:
  void Bind(ValueIndex v, const Numbers& numbers) {
    const TensorView view = View(v);
    DT_CHECK_MSG(numbers.size() == static_cast<size_t>(view.size()), "{}: {} values for {}",
                 case_.name, numbers.size(), view.size());
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (view.dtype == DType::kF32) view.as<float>()[i] = static_cast<float>(numbers[i]);
      if (view.dtype == DType::kF64) view.as<double>()[i] = numbers[i];
      if (view.dtype == DType::kU32) view.as<uint32_t>()[i] = static_cast<uint32_t>(numbers[i]);
      if (view.dtype == DType::kBf16) static_cast<uint16_t*>(view.data)[i] = ToBf16(numbers[i]);
    }
  }

  NodeIndex Append(Node node) {
    Result<std::vector<Value>> inferred = Infer(node);
    DT_CHECK_MSG(inferred.ok(), "{}: {}", case_.name, ToText(inferred.status()));
    const NodeIndex index = graph_.AddNode(std::move(node), inferred->size());
    for (size_t i = 0; i < inferred->size(); ++i) {
      Value& value = graph_.values[graph_.nodes[index].outputs[i]];
      value.shape = (*inferred)[i].shape;
      // A constant is f32 in a real graph; here it needs the type of the other inputs.
      value.dtype = graph_.nodes[index].inputs.empty() ? dtype_ : (*inferred)[i].dtype;
    }
    return index;
  }

  void RunNode(NodeIndex index) {
    const Node& node = graph_.nodes[index];
    std::vector<TensorView> inputs, outputs;
    for (const ValueIndex v : node.inputs) inputs.push_back(View(v));
    for (const ValueIndex v : node.outputs) outputs.push_back(View(v));
    backend_->Run({graph_, node, inputs, outputs, case_.run, sizes_});
  }

  const OpCase& case_;
  const DType dtype_;
  Backend* const backend_;
  std::vector<int64_t> sizes_;
  Graph graph_;
  Node node_;
  std::map<ValueIndex, std::vector<double>> memory_;
  std::vector<ValueIndex> output_grads_, input_grads_;
};

}  // namespace

Shape ShapeIn(const OpCase& c, const SymShape& shape) {
  Shape concrete;
  for (const Dim& dim : shape) {
    concrete.push_back(dim.symbol == kConstant ? dim.times : dim.times * c.sizes.at(dim.symbol));
  }
  return concrete;
}

Result<std::vector<Value>> InferCase(const OpCase& c) {
  OpCase without_values = c;
  for (CaseInput& input : without_values.inputs) {
    input.values.assign(static_cast<size_t>(ElementCount(ShapeIn(c, input.shape))), 0.0);
  }
  return Bench(without_values, DType::kF32, nullptr).Infer();
}

RunResult RunCase(const OpCase& c, DType dtype, uint32_t threads) {
  CpuBackend cpu(threads);
  return RunCase(c, dtype, cpu);
}

RunResult RunCase(const OpCase& c, DType dtype, Backend& backend) {
  Bench bench(c, dtype, &backend);
  bench.RunForward();
  RunResult result;
  for (const ValueIndex v : bench.node().outputs) {
    result.outputs.push_back(bench.Read(v));
    result.shapes.push_back(bench.View(v).shape);
  }
  for (const ValueIndex v : bench.node().inputs) result.inputs.push_back(bench.Read(v));
  return result;
}

std::vector<Numbers> GradientOf(const OpCase& c, const std::vector<Numbers>& output_grads,
                                DType dtype, uint32_t threads) {
  CpuBackend cpu(threads);
  return GradientOf(c, output_grads, dtype, cpu);
}

std::vector<Numbers> GradientOf(const OpCase& c, const std::vector<Numbers>& output_grads,
                                DType dtype, Backend& backend) {
  Bench bench(c, dtype, &backend);
  bench.RunForward();
  return bench.Gradients(output_grads);
}

bool HasGradient(const OpCase& c) {
  return FindOp(c.op)->gradient != nullptr &&
         std::ranges::any_of(c.inputs, [](const CaseInput& input) { return input.smooth; });
}

std::vector<Numbers> RandomGrads(const OpCase& c, const RunResult& result) {
  std::vector<Numbers> grads;
  for (const Numbers& output : result.outputs) {
    grads.push_back(Normals(output.size(), 1000 + grads.size()));
  }
  for (size_t i = 1; PassesFirstOnly(c) && i < grads.size(); ++i) std::ranges::fill(grads[i], 0);
  return grads;
}

OpCase CaseOf(std::string op, Attrs attrs, std::vector<CaseInput> inputs, int64_t batch) {
  OpCase c;
  c.name = c.op = std::move(op);
  c.attrs = std::move(attrs);
  c.inputs = std::move(inputs);
  c.sizes[kBatch] = batch;
  return c;
}

double RoundedToBf16(double value) { return FromBf16(ToBf16(value)); }

Numbers Normals(size_t count, uint64_t stream) {
  std::vector<float> values(count);
  FillNormal(stream, 0, values);
  return {values.begin(), values.end()};
}

CaseInput Floats(const OpCase& c, SymShape shape, uint64_t stream) {
  const auto count = static_cast<size_t>(ElementCount(ShapeIn(c, shape)));
  return {std::move(shape), Normals(count, stream)};
}

}  // namespace dt::test
