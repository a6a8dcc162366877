#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "common/graph/graph.h"

namespace dt {
namespace {

std::string_view DeviceText(Device device) {
  switch (device) {
    case Device::kAuto:
      return "auto";
    case Device::kCpu:
      return "cpu";
    case Device::kGpu:
      return "gpu";
    case Device::kPs:
      return "ps";
  }
  DT_UNREACHABLE();
}

std::string_view KindText(ValueKind kind) {
  switch (kind) {
    case ValueKind::kNode:
      return "node";
    case ValueKind::kInput:
      return "input";
    case ValueKind::kParameter:
      return "parameter";
    case ValueKind::kState:
      return "state";
    case ValueKind::kReplica:
      return "replica";
    case ValueKind::kPart:
      return "part";
    case ValueKind::kTable:
      return "table";
  }
  DT_UNREACHABLE();
}

std::string ItemText(bool value) { return value ? "true" : "false"; }
std::string ItemText(int64_t value) { return fmt::format("{}", value); }
std::string ItemText(double value) { return fmt::format("{}", value); }
std::string ItemText(const std::string& value) { return value; }
template <class T>
std::string ItemText(const std::vector<T>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ", ";
    text += ItemText(values[i]);
  }
  return text + "]";
}

std::string AttrsText(const Attrs& attrs) {
  std::string text;
  for (const auto& [name, value] : attrs) {
    text += text.empty() ? " {" : ", ";
    text += name + ": " + std::visit([](const auto& v) { return ItemText(v); }, value);
  }
  return text.empty() ? text : text + "}";
}

std::string NamesText(const Graph& graph, const std::vector<ValueIndex>& values) {
  std::string text;
  for (const ValueIndex v : values) {
    if (!text.empty()) text += ", ";
    text += graph.value(v).name;
  }
  return text;
}

std::string ValueText(const Graph& graph, const Value& value) {
  std::string text = value.name + " " + ShapeText(graph, value.shape);
  if (value.dtype != DType::kF32) text += fmt::format(" {}", NameOf(value.dtype));
  if (value.device == Device::kGpu && value.kind != ValueKind::kNode) text += " on gpu";
  return text;
}

std::string DotQuoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

nlohmann::json ShapeJson(const Graph& graph, const SymShape& shape) {
  nlohmann::json out = nlohmann::json::array();
  for (const Dim& dim : shape) {
    if (dim.symbol == kConstant) {
      out.push_back(dim.times);
    } else {
      out.push_back(dim.times == 1 ? graph.symbols[dim.symbol]
                                   : fmt::format("{}*{}", dim.times, graph.symbols[dim.symbol]));
    }
  }
  return out;
}

nlohmann::json AttrsJson(const Attrs& attrs) {
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [name, value] : attrs) {
    std::visit([&out, &name = name](const auto& v) { out[name] = v; }, value);
  }
  return out;
}

nlohmann::json NodeJson(const Graph& graph, const Node& node) {
  nlohmann::json out = {{"name", node.name},
                        {"op", node.op},
                        {"inputs", node.inputs},
                        {"outputs", node.outputs},
                        {"device", DeviceText(node.device)},
                        {"phase", NameOf(node.phase)},
                        {"stage", node.stage}};
  if (!node.attrs.empty()) out["attrs"] = AttrsJson(node.attrs);
  if (node.forward != kNone && node.forward < graph.nodes.size()) {
    out["forward"] = graph.nodes[node.forward].name;
  }
  if (node.mark.line > 0) out["mark"] = fmt::format("{}:{}", node.mark.file, node.mark.line);
  return out;
}

}  // namespace

std::string ShapeText(const Graph& graph, const SymShape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    const Dim& dim = shape[i];
    if (dim.symbol == kConstant) {
      text += fmt::format("{}", dim.times);
    } else {
      text += dim.times == 1 ? graph.symbols[dim.symbol]
                             : fmt::format("{}*{}", dim.times, graph.symbols[dim.symbol]);
    }
  }
  return text + "]";
}

std::string NodeText(const Graph& graph, const Node& node) {
  std::string text;
  for (const ValueIndex v : node.outputs) {
    if (!text.empty()) text += ", ";
    text += ValueText(graph, graph.value(v));
  }
  text += fmt::format("{}{}({}){}", text.empty() ? "" : " = ", node.op,
                      NamesText(graph, node.inputs), AttrsText(node.attrs));
  if (node.outputs.empty()) text = node.name + ": " + text;
  if (node.device != Device::kAuto) text += fmt::format(" on {}", DeviceText(node.device));
  if (node.phase != Phase::kSlice) text += " each step";
  if (node.forward != kNone && node.forward < graph.nodes.size()) {
    text += fmt::format(" of {}", graph.nodes[node.forward].name);
  }
  return text;
}

std::string DumpText(const Graph& graph) {
  std::string text;
  for (const Value& value : graph.values) {
    if (value.kind == ValueKind::kNode) continue;
    text += fmt::format("{} {}\n", KindText(value.kind), ValueText(graph, value));
  }
  for (size_t g = 0; g < graph.groups.size(); ++g) {
    text += fmt::format("group {} = [{}]\n", g, fmt::join(graph.groups[g].members, ", "));
  }
  for (const Node& node : graph.nodes) text += NodeText(graph, node) + "\n";
  for (const TableUse& table : graph.tables) {
    if (table.row_grad == kNone) continue;
    text += fmt::format("push {} <- {}\n", table.name, graph.value(table.row_grad).name);
  }
  for (const ParameterSpec& p : graph.parameters) {
    if (p.pushed == kNone) continue;
    text += fmt::format("push {} <- {}\n", graph.value(p.value).name, graph.value(p.pushed).name);
  }
  for (const LossSpec& loss : graph.losses) {
    text += fmt::format("loss {} = {} of {}", loss.name, loss.type, graph.value(loss.output).name);
    if (loss.loss != kNone) text += fmt::format(" -> {}", graph.value(loss.loss).name);
    text += "\n";
  }
  return text;
}

std::string DumpDot(const Graph& graph) {
  std::string text =
      "digraph model {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.kind == ValueKind::kNode) continue;
    text += fmt::format("  v{} [shape=ellipse, label={}];\n", v,
                        DotQuoted(fmt::format("{} {}", value.name, ShapeText(graph, value.shape))));
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const std::string style = node.forward != kNone         ? ", style=dashed"
                              : node.phase != Phase::kSlice ? ", style=bold"
                                                            : "";
    text += fmt::format("  n{} [label={}{}];\n", n, DotQuoted(node.name + " : " + node.op), style);
    for (const ValueIndex v : node.inputs) {
      const NodeIndex from = graph.value(v).producer;
      const std::string source = from == kNone ? fmt::format("v{}", v) : fmt::format("n{}", from);
      text += fmt::format("  {} -> n{} [label={}];\n", source, n,
                          DotQuoted(ShapeText(graph, graph.value(v).shape)));
    }
  }
  return text + "}\n";
}

std::string DumpJson(const Graph& graph) {
  nlohmann::json out;
  out["values"] = nlohmann::json::array();
  for (const Value& value : graph.values) {
    out["values"].push_back({{"name", value.name},
                             {"kind", KindText(value.kind)},
                             {"dtype", NameOf(value.dtype)},
                             {"device", DeviceText(value.device)},
                             {"shape", ShapeJson(graph, value.shape)}});
  }
  out["nodes"] = nlohmann::json::array();
  for (const Node& node : graph.nodes) out["nodes"].push_back(NodeJson(graph, node));
  out["groups"] = nlohmann::json::array();
  for (const GroupSpec& group : graph.groups) out["groups"].push_back(group.members);
  out["tables"] = nlohmann::json::array();
  for (const TableUse& table : graph.tables) {
    nlohmann::json entry = {{"name", table.name}, {"dim", table.dim}, {"rows", table.rows}};
    if (table.row_grad != kNone) entry["row_grad"] = table.row_grad;
    out["tables"].push_back(entry);
  }
  out["losses"] = nlohmann::json::array();
  for (const LossSpec& loss : graph.losses) {
    out["losses"].push_back({{"name", loss.name}, {"type", loss.type}, {"output", loss.output}});
  }
  return out.dump(1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace dt
