#include "common/graph/graph.h"

#include <algorithm>

#include "common/graph/shape_bounds.h"
#include "common/specs/loss_type.h"

namespace dt {

ValueIndex Graph::AddValue(Value value) {
  values.push_back(std::move(value));
  return static_cast<ValueIndex>(values.size() - 1);
}

NodeIndex Graph::AddNode(Node node, size_t outputs) {
  const auto index = static_cast<NodeIndex>(nodes.size());
  node.outputs.clear();
  for (size_t i = 0; i < outputs; ++i) {
    Value value;
    value.name = outputs == 1 ? node.name : fmt::format("{}:{}", node.name, i);
    value.producer = index;
    node.outputs.push_back(AddValue(std::move(value)));
  }
  nodes.push_back(std::move(node));
  return index;
}

SymbolIndex Graph::SymbolNamed(const std::string& name) {
  const auto found = std::find(symbols.begin(), symbols.end(), name);
  if (found != symbols.end()) return static_cast<SymbolIndex>(found - symbols.begin());
  symbols.push_back(name);
  return static_cast<SymbolIndex>(symbols.size() - 1);
}

namespace {

const AttrValue* FindAttr(const Attrs& attrs, std::string_view name) {
  const auto found = attrs.find(std::string(name));
  return found == attrs.end() ? nullptr : &found->second;
}

template <class T>
const T* TypedAttr(const Attrs& attrs, std::string_view name) {
  const AttrValue* value = FindAttr(attrs, name);
  if (value == nullptr) return nullptr;
  const T* typed = std::get_if<T>(value);
  DT_CHECK_MSG(typed != nullptr, "attribute {} has type number {}", name, value->index());
  return typed;
}

}  // namespace

int64_t IntAttr(const Attrs& attrs, std::string_view name, int64_t fallback) {
  const int64_t* value = TypedAttr<int64_t>(attrs, name);
  return value == nullptr ? fallback : *value;
}

double FloatAttr(const Attrs& attrs, std::string_view name, double fallback) {
  const AttrValue* value = FindAttr(attrs, name);
  if (value == nullptr) return fallback;
  // In YAML, `1` is a whole number even where a real one is expected.
  if (const auto* whole = std::get_if<int64_t>(value)) return static_cast<double>(*whole);
  return *TypedAttr<double>(attrs, name);
}

bool BoolAttr(const Attrs& attrs, std::string_view name, bool fallback) {
  const bool* value = TypedAttr<bool>(attrs, name);
  return value == nullptr ? fallback : *value;
}

std::string TextAttr(const Attrs& attrs, std::string_view name, const std::string& fallback) {
  const std::string* value = TypedAttr<std::string>(attrs, name);
  return value == nullptr ? fallback : *value;
}

std::vector<int64_t> IntsAttr(const Attrs& attrs, std::string_view name) {
  const auto* value = TypedAttr<std::vector<int64_t>>(attrs, name);
  return value == nullptr ? std::vector<int64_t>() : *value;
}

bool IsWithinBounds(const SymShape& shape) {
  int64_t elements = 1;
  for (const Dim& dim : shape) {
    if (dim.times < 0 || dim.times > kElementsMax) return false;
    elements *= std::max<int64_t>(1, dim.times);
    if (elements > kElementsMax) return false;
  }
  return shape.size() <= kRankMax;
}

namespace {

class Checker {
 public:
  explicit Checker(const Graph& graph) : graph_(graph), produced_(graph.values.size(), false) {}

  Status Run() {
    DT_TRY_STATUS(Values());
    for (size_t n = 0; n < graph_.nodes.size(); ++n) DT_TRY_STATUS(OneNode(n));
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      if (graph_.values[v].kind == ValueKind::kNode && !produced_[v]) {
        return Bad("value {} \"{}\" is produced by no node", v, graph_.values[v].name);
      }
    }
    DT_TRY_STATUS(Lookups());
    DT_TRY_STATUS(Inputs());
    return Roots();
  }

 private:
  template <class... Args>
  static Status Bad(fmt::format_string<Args...> format, Args&&... args) {
    return Internal("graph: {}", fmt::format(format, std::forward<Args>(args)...));
  }
  bool IsValue(ValueIndex v) const { return v < graph_.values.size(); }
  bool IsKind(ValueIndex v, ValueKind kind) const {
    return IsValue(v) && graph_.values[v].kind == kind;
  }

  Status Values() const {
    if (graph_.symbols.size() < 2 || graph_.symbols[kConstant] != "1" ||
        graph_.symbols[kBatch] != "B") {
      return Bad("the first two symbols must be 1 and B");
    }
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      const Value& value = graph_.values[v];
      if (!ShapeIsSane(value.shape)) return Bad("value {} \"{}\" has no shape", v, value.name);
      if ((value.kind == ValueKind::kNode) != (value.producer != kNone)) {
        return Bad("value {} \"{}\": its kind and its producer disagree", v, value.name);
      }
    }
    return OkStatus();
  }

  bool ShapeIsSane(const SymShape& shape) const {
    const auto known = [this](const Dim& dim) { return dim.symbol < graph_.symbols.size(); };
    return std::ranges::all_of(shape, known) && IsWithinBounds(shape);
  }

  Status OneNode(size_t n) {
    const Node& node = graph_.nodes[n];
    if (node.op.empty()) return Bad("node {} \"{}\" has no operator", n, node.name);
    if (node.forward != kNone && node.forward >= graph_.nodes.size()) {
      return Bad("node {} \"{}\" differentiates node {}, which is none", n, node.name,
                 node.forward);
    }
    for (const ValueIndex v : node.inputs) {
      if (!IsValue(v)) return Bad("node {} \"{}\" reads value {}, which is none", n, node.name, v);
      if (graph_.values[v].kind == ValueKind::kNode && !produced_[v]) {
        return Bad("node {} \"{}\" reads value {} before it is produced", n, node.name, v);
      }
    }
    for (const ValueIndex v : node.outputs) {
      if (!IsKind(v, ValueKind::kNode) || graph_.values[v].producer != n || produced_[v]) {
        return Bad("node {} \"{}\" cannot produce value {}", n, node.name, v);
      }
      produced_[v] = true;
    }
    return OkStatus();
  }

  Status Lookups() const {
    for (const LookupSpec& lookup : graph_.lookups) {
      const bool shape_ok =
          !lookup.columns.empty() && (lookup.length > 0 || lookup.columns.size() == 1);
      if (lookup.table >= graph_.tables.size() || !shape_ok) {
        return Bad("lookup \"{}\" is not well formed", lookup.name);
      }
    }
    return OkStatus();
  }

  Status Inputs() const {
    std::vector<bool> bound(graph_.values.size(), false);
    for (const InputSpec& input : graph_.inputs) {
      if (!IsKind(input.value, ValueKind::kInput) || bound[input.value]) {
        return Bad("an input binds value {}, which is no input or bound twice", input.value);
      }
      bound[input.value] = true;
      const bool of_columns = input.kind <= InputKind::kKeys;
      const bool of_table = input.kind >= InputKind::kRows;
      const bool of_lookup = !of_columns && !of_table;
      if ((of_columns && input.columns.empty()) ||
          (of_table && input.table >= graph_.tables.size()) ||
          (of_lookup && input.lookup >= graph_.lookups.size())) {
        return Bad("input \"{}\" names no source", graph_.values[input.value].name);
      }
    }
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      if (graph_.values[v].kind == ValueKind::kInput && !bound[v]) {
        return Bad("input value {} \"{}\" has no source", v, graph_.values[v].name);
      }
    }
    return OkStatus();
  }

  // A table is on servers, or on the worker; there it has a value of its own, at least as wide as
  // its rows.
  bool TableIsSane(const TableUse& t) const {
    const bool grad_ok = t.row_grad == kNone || IsKind(t.row_grad, ValueKind::kNode);
    if (!grad_ok || t.dim == 0) return false;
    if (t.store == kNone) return IsKind(t.rows, ValueKind::kInput);
    if (!IsKind(t.rows, ValueKind::kNode) || !IsKind(t.store, ValueKind::kTable)) return false;
    const auto others = std::ranges::count(graph_.tables, t.store, &TableUse::store);
    const SymShape& shape = graph_.values[t.store].shape;
    return others == 1 && shape.size() == 2 && shape[0].symbol != kConstant &&
           shape[1].symbol == kConstant && shape[1].times >= t.dim;
  }

  Status Roots() const {
    for (const ParameterSpec& p : graph_.parameters) {
      if (!IsKind(p.value, ValueKind::kParameter) && !IsKind(p.value, ValueKind::kState)) {
        return Bad("parameter value {} is none", p.value);
      }
      for (const Dim& dim : graph_.values[p.value].shape) {
        const bool owned = !p.trained && graph_.symbols[dim.symbol].starts_with("O.");
        if (dim.symbol != kConstant && !owned) {
          return Bad("parameter value {} has no fixed size", p.value);
        }
      }
      if (p.grad != kNone && !IsKind(p.grad, ValueKind::kNode)) {
        return Bad("the gradient of parameter value {} is none", p.value);
      }
      if (p.pushed != kNone && (!IsKind(p.pushed, ValueKind::kNode) ||
                                graph_.values[p.pushed].shape != graph_.values[p.value].shape)) {
        return Bad("what is pushed of parameter value {} is not its gradient", p.value);
      }
    }
    for (const ReplicaSpec& r : graph_.replicas) {
      const bool of_ok = IsKind(r.of, ValueKind::kParameter) || IsKind(r.of, ValueKind::kState);
      if (!IsKind(r.value, ValueKind::kReplica) || !of_ok ||
          graph_.values[r.value].shape != graph_.values[r.of].shape) {
        return Bad("value {} is a replica of none", r.value);
      }
    }
    for (const PartSpec& part : graph_.parts) {
      if (!IsKind(part.of, ValueKind::kParameter) || !IsKind(part.value, ValueKind::kPart) ||
          graph_.values[part.of].shape.empty() || graph_.values[part.value].shape.empty() ||
          part.group >= graph_.groups.size()) {
        return Bad("value {} is no part of a parameter", part.value);
      }
    }
    for (const TableUse& t : graph_.tables) {
      if (!TableIsSane(t)) return Bad("table \"{}\" is not well formed", t.name);
    }
    for (const LossSpec& loss : graph_.losses) {
      const bool labelled = loss.label != kNone;
      if (!IsValue(loss.output) || !IsScored(loss) || !IsValue(loss.loss) ||
          (labelled && !IsKind(loss.label, ValueKind::kInput))) {
        return Bad("loss \"{}\" is not well formed", loss.name);
      }
    }
    return OkStatus();
  }

  // All samples of the slice, or a part of them.
  bool IsSamples(const Dim& dim) const {
    const std::string& symbol = graph_.symbols[dim.symbol];
    return dim.times == 1 && (dim.symbol == kBatch || symbol.starts_with("B/"));
  }

  // Whether the loss's output has the shape that evaluations read.
  bool IsScored(const LossSpec& loss) const {
    const SymShape& shape = graph_.values[loss.output].shape;
    if (shape.size() != 2 || !IsSamples(shape[0]) || shape[1].symbol != kConstant) return false;
    if (loss.type == "softmax_cross_entropy" || HasNegatives(loss.type)) {
      return shape[1].times >= 2;
    }
    return shape[1].times == (loss.type == "in_batch_softmax" ? 3 : 1);
  }

  const Graph& graph_;
  std::vector<bool> produced_;
};

}  // namespace

Status CheckGraph(const Graph& graph) { return Checker(graph).Run(); }

}  // namespace dt
