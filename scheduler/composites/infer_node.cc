#include "scheduler/composites/infer_node.h"

#include "common/graph/shape_bounds.h"
#include "ops/op_spec.h"

namespace dt::scheduler {
namespace {

// Most CPU kernels compute in f32 only.
Status CheckTypes(const Graph& graph, const Node& node, const OpSpec& spec) {
  if (spec.takes_bf16) return OkStatus();
  for (const ValueIndex v : node.inputs) {
    if (graph.value(v).dtype != DType::kBf16) continue;
    return WithHint(Invalid("{}: input \"{}\" holds bf16", node.op, graph.value(v).name),
                    "cast it to fp32 first");
  }
  return OkStatus();
}

}  // namespace

Status InferNode(Graph& graph, NodeIndex index) {
  const Node& node = graph.nodes[index];
  const OpSpec* spec = FindOp(node.op);
  if (spec == nullptr || spec->infer == nullptr) {
    return Internal("node \"{}\": operator {} has no shape rule", node.name, node.op);
  }
  if (Status status = CheckTypes(graph, node, *spec); !status.ok()) {
    return AboutNode(std::move(status), node.name, node.mark);
  }
  InferContext context{graph, node, std::vector<Value>(node.outputs.size())};
  if (Status status = spec->infer(context); !status.ok()) {
    return AboutNode(std::move(status), node.name, node.mark);
  }
  if (context.outputs.size() != node.outputs.size()) {
    return Internal("node \"{}\": {} gives {} outputs, not {}", node.name, node.op,
                    context.outputs.size(), node.outputs.size());
  }
  for (const Value& output : context.outputs) {
    if (Status status = CheckBounds(graph, "its result", output.shape); !status.ok()) {
      return AboutNode(std::move(status), node.name, node.mark);
    }
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    graph.values[node.outputs[i]].dtype = context.outputs[i].dtype;
    graph.values[node.outputs[i]].shape = context.outputs[i].shape;
  }
  return OkStatus();
}

Status CheckBounds(const Graph& graph, std::string_view what, const SymShape& shape) {
  if (IsWithinBounds(shape)) return OkStatus();
  return Invalid("{} would be {}; a tensor has at most {} dimensions and {} elements", what,
                 ShapeText(graph, shape), kRankMax, kElementsMax);
}

Status AboutNode(Status status, std::string_view node, const SourceMark& mark) {
  return AtMark(Prefixed(std::move(status), fmt::format("node \"{}\"", node)), mark);
}

Status AtMark(Status status, const SourceMark& mark) {
  std::string where = mark.file;
  if (mark.line > 0) where += fmt::format(":{}", mark.line);
  return where.empty() ? std::move(status) : WithWhere(std::move(status), where);
}

}  // namespace dt::scheduler
