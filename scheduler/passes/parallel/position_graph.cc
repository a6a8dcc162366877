#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "common/base/check.h"
#include "ops/op_spec.h"
#include "ops/sharding.h"
#include "scheduler/passes/parallel/parallel_graph.h"

namespace dt::scheduler {
namespace {

// The length of the outermost factor.
int64_t OuterSize(const Dim& whole, const CutDim& dim) {
  int64_t inner = 1;
  for (size_t f = 1; f < dim.size(); ++f) inner *= dim[f].size;
  return whole.times / inner;
}
// The part of a factor that a device at these coordinates has.
Range PartOfFactor(const CutFactor& factor, int64_t size, const DeviceMatrix& matrix,
                   const std::vector<uint32_t>& at) {
  if (!factor.parts.empty()) return GivenPart(factor.parts, at[factor.axes[0]]);
  Range range{0, size};
  for (const AxisIndex axis : factor.axes) range = EvenPart(range, matrix[axis], at[axis]);
  return range;
}

class Position {
 public:
  Position(const ParallelGraph& parallel, DeviceIndex device)
      : parallel_(parallel), device_(device), local_(parallel.graph) {}

  Graph Make() {
    for (ValueIndex v = 0; v < local_.values.size(); ++v) {
      const Layout& layout = parallel_.layouts[v];
      const SymShape& whole = parallel_.graph.value(v).shape;
      for (size_t d = 0; d < whole.size(); ++d) {
        local_.values[v].shape[d] = LocalDim(whole[d], layout.dims[d], layout.matrix);
      }
    }
    for (InputSpec& input : local_.inputs) SetColumns(input, input.value);
    for (ParameterSpec& parameter : local_.parameters) SetPart(parameter, parameter.value);
    for (NodeIndex n = 0; n < local_.nodes.size(); ++n) {
      if (TraitsOf(local_.nodes[n].op).kind != OpKind::kCommunication) SetAttrs(n);
    }
    SetGroups(local_);
    return std::move(local_);
  }

  // Passes number values anew, and add inputs and parameters behind those that they get.
  void MoveTo(Graph& graph) const {
    SetGroups(graph);
    for (size_t i = 0; i < parallel_.graph.inputs.size(); ++i) {
      const InputSpec& whole = parallel_.graph.inputs[i];
      DT_CHECK(graph.inputs.at(i).kind == whole.kind);
      graph.inputs[i].columns = whole.columns;
      SetColumns(graph.inputs[i], whole.value);
    }
    std::map<ValueIndex, const ParameterSpec*> moved;
    for (size_t i = 0; i < graph.parameters.size(); ++i) {
      ParameterSpec& p = graph.parameters[i];
      if (p.state_of == kNone) {
        const ValueIndex whole = parallel_.graph.parameters.at(i).value;
        DT_CHECK(graph.value(p.value).name == parallel_.graph.value(whole).name);
        SetPart(p, whole);
        moved[p.value] = &p;
      } else {
        p.first = moved.at(p.state_of)->first;
        p.copy = moved.at(p.state_of)->copy;
      }
    }
    std::map<std::string_view, Node*> named;
    for (Node& node : graph.nodes) {
      const bool has_place = node.attrs.contains("first") || node.attrs.contains("manual_split");
      if (has_place) named[node.name] = &node;
    }
    for (NodeIndex n = 0; n < parallel_.graph.nodes.size() && !named.empty(); ++n) {
      const auto node = named.find(parallel_.graph.nodes[n].name);
      if (node == named.end()) continue;
      const Result<Sharding> rule = ShardingOf(parallel_.graph, parallel_.graph.nodes[n]);
      DT_CHECK(rule.ok());
      SetPlace(*node->second, *rule, parallel_.cuts[n]);
    }
  }

 private:
  void SetGroups(Graph& graph) const {
    graph.groups.clear();
    for (const DeviceGroups& groups : parallel_.groups) {
      graph.groups.push_back({MembersOf(groups, device_)});
    }
  }

  static SamplePart PartsOf(const DeviceMatrix& matrix, const AxisList& axes) {
    SamplePart parts;
    for (const AxisIndex axis : axes) {
      if (matrix[axis] == 1) continue;
      int64_t stride = 1;
      for (size_t a = axis + 1; a < matrix.size(); ++a) stride *= matrix[a];
      parts.push_back(matrix[axis]);
      parts.push_back(stride);
    }
    return parts;
  }

  // B, or a part of it.
  SymbolIndex SymbolFor(const DeviceMatrix& matrix, const AxisList& axes) {
    return local_.SymbolNamed(SymbolOf(PartsOf(matrix, axes)));
  }

  Dim LocalDim(const Dim& whole, const CutDim& dim, const DeviceMatrix& matrix) {
    // Ids, rows and lists are as many as the samples of the device have.
    if (dim.empty() || whole.symbol > kBatch) return whole;
    const std::vector<uint32_t> at = CoordinatesOf(matrix, device_);
    Dim local = Const(1);
    for (size_t f = 0; f < dim.size(); ++f) {
      if (f == 0 && whole.symbol == kBatch) {
        local.symbol = SymbolFor(matrix, dim[f].axes);
        local.times = dim.size() == 1 ? whole.times : 1;
        continue;
      }
      const int64_t size = dim[f].size != 0 ? dim[f].size : OuterSize(whole, dim);
      local.times *= PartOfFactor(dim[f], size, matrix, at).size();
    }
    return local;
  }

  // The part of a value with constant dimensions: a range of each.
  Box PartOf(ValueIndex v) const {
    Shape shape;
    for (const Dim& dim : parallel_.graph.value(v).shape) shape.push_back(dim.times);
    Box box;
    for (const Places& places : SliceOf(parallel_.layouts[v], shape, device_)) {
      box.push_back(places.empty() ? Range() : Range{places.front().begin, places.back().end});
    }
    return box;
  }

  // The columns of the data, or the positions of ids and vectors, that this device reads.
  void SetColumns(InputSpec& input, ValueIndex value) const {
    const SymShape& whole = parallel_.graph.value(value).shape;
    const bool ids = input.kind == InputKind::kIds || input.kind == InputKind::kIdWeights;
    const bool vectors = input.kind == InputKind::kFloats &&
                         whole.back() != Const(static_cast<int64_t>(input.columns.size()));
    if (!ids && !vectors && input.columns.size() < 2) return;
    const Range columns = PartOf(value).back();
    if (ids || vectors) {
      input.first = static_cast<uint32_t>(columns.begin);
    } else {
      input.columns = {input.columns.begin() + columns.begin, input.columns.begin() + columns.end};
    }
  }

  void SetPart(ParameterSpec& parameter, ValueIndex value) const {
    const Box box = PartOf(value);
    parameter.copy = ReplicasOf(parallel_.layouts[value], device_).front() != device_;
    Shape whole, first;
    bool divided = false;
    for (size_t d = 0; d < box.size(); ++d) {
      whole.push_back(parallel_.graph.value(value).shape[d].times);
      first.push_back(box[d].begin);
      divided = divided || box[d].size() != whole.back();
    }
    if (!divided) return;
    parameter.whole = std::move(whole);
    parameter.first = std::move(first);
  }

  void SetAttrs(NodeIndex n) {
    Node& node = local_.nodes[n];
    const NodeCut& cut = parallel_.cuts[n];
    const Result<Sharding> rule = ShardingOf(parallel_.graph, parallel_.graph.nodes[n]);
    DT_CHECK(rule.ok());
    for (const ShardAttr& attr : rule->attrs) {
      if (!attr.first && !attr.axis.lists) SetAttr(node, attr, *rule, cut);
    }
    SetPlace(node, *rule, cut);
    for (size_t loop = 0; loop < rule->loops.size(); ++loop) {
      const SamplePart parts = PartsOf(cut.matrix, cut.loops[loop]);
      const bool samples = rule->loops[loop].extent == Dim{kBatch, 1};
      if (samples && !parts.empty()) node.attrs["sample_part"] = parts;
    }
  }

  Range RangeOf(LoopIndex loop, const Sharding& rule, const NodeCut& cut) const {
    Range range{0, rule.loops[loop].extent.times};
    const std::vector<uint32_t> at = CoordinatesOf(cut.matrix, device_);
    for (const AxisIndex axis : cut.loops[loop]) {
      range = EvenPart(range, cut.matrix[axis], at[axis]);
    }
    return range;
  }

  // The range of an attribute's loops, as positions of their product, and how many there are.
  struct Counted {
    Range range;
    int64_t whole = 1;
  };
  Counted CountOf(const ShardAxis& axis, const Sharding& rule, const NodeCut& cut) const {
    Counted counted{{0, 1}};
    int64_t count = 1;
    for (const LoopIndex loop : axis.loops) {
      const ShardLoop& of = rule.loops[loop];
      if (of.extent.symbol != kConstant) continue;
      const Range range = RangeOf(loop, rule, cut);
      counted.range.begin = counted.range.begin * of.extent.times + range.begin;
      counted.whole *= of.extent.times;
      count *= range.size();
    }
    counted.range.end = counted.range.begin + count;
    return counted;
  }

  // Positions of a dimension that varies are counted by no attribute: it says -1, or B.
  void SetAttr(Node& node, const ShardAttr& attr, const Sharding& rule, const NodeCut& cut) const {
    const Counted counted = CountOf(attr.axis, rule, cut);
    if (counted.range.size() == counted.whole) return;
    AttrValue& value = node.attrs[attr.name];
    auto* const numbers = std::get_if<std::vector<int64_t>>(&value);
    if (numbers == nullptr) {
      value = counted.range.size();
    } else if ((*numbers)[attr.at] >= 0) {
      (*numbers)[attr.at] = counted.range.size();
    }
  }

  // Sets the attributes that may differ between devices whose parts have equal lengths.
  void SetPlace(Node& node, const Sharding& rule, const NodeCut& cut) const {
    SetFirst(node, rule, cut);
    for (const ShardAttr& attr : rule.attrs) {
      if (attr.axis.lists) SetLengths(node, attr, rule, cut);
    }
  }

  // The lengths of this device's lists.
  void SetLengths(Node& node, const ShardAttr& attr, const Sharding& rule,
                  const NodeCut& cut) const {
    const std::vector<int64_t>& lengths = rule.loops[attr.axis.loops[0]].lists;
    const Range range = RangeOf(attr.axis.loops[0], rule, cut);
    node.attrs[attr.name] =
        std::vector<int64_t>(lengths.begin() + range.begin, lengths.begin() + range.end);
  }

  // Where this device's part begins, if a constant dimension is divided: `first`, and beside it
  // `whole`, the lengths of all dimensions.
  void SetFirst(Node& node, const Sharding& rule, const NodeCut& cut) const {
    std::vector<int64_t> first, whole;
    bool divided = false;
    for (const ShardAttr& attr : rule.attrs) {
      if (!attr.first) continue;
      const Counted counted = CountOf(attr.axis, rule, cut);
      first.push_back(counted.range.begin);
      whole.push_back(counted.whole);
      divided = divided || counted.range.size() != counted.whole;
    }
    if (!divided) return;
    node.attrs["first"] = first;
    node.attrs["whole"] = whole;
  }

  const ParallelGraph& parallel_;
  const DeviceIndex device_;
  Graph local_;
};

// Adds to each device's lengths those of its parts of a dimension's factors.
void AddLengths(const CutDim& dim, const Dim& whole, const DeviceMatrix& matrix,
                std::vector<std::vector<int64_t>>& lengths) {
  if (dim.empty() || whole.symbol > kBatch) return;
  for (size_t f = 0; f < dim.size(); ++f) {
    // Samples have a symbol of their own.
    if (dim[f].axes.empty() || (f == 0 && whole.symbol == kBatch)) continue;
    const int64_t size = dim[f].size != 0 ? dim[f].size : OuterSize(whole, dim);
    for (DeviceIndex i = 0; i < lengths.size(); ++i) {
      lengths[i].push_back(PartOfFactor(dim[f], size, matrix, CoordinatesOf(matrix, i)).size());
    }
  }
}

}  // namespace

Graph PositionGraph(const ParallelGraph& parallel, DeviceIndex device) {
  return Position(parallel, device).Make();
}

void MoveTo(const ParallelGraph& parallel, DeviceIndex device, Graph& graph) {
  Position(parallel, device).MoveTo(graph);
}

std::vector<uint32_t> ShapeClasses(const ParallelGraph& parallel) {
  std::vector<std::vector<int64_t>> lengths(parallel.devices);
  std::vector<std::pair<const Layout*, const SymShape*>> seen;
  for (ValueIndex v = 0; v < parallel.layouts.size(); ++v) {
    const Layout& layout = parallel.layouts[v];
    const SymShape& shape = parallel.graph.value(v).shape;
    const bool known = std::ranges::any_of(
        seen, [&](const auto& other) { return *other.first == layout && *other.second == shape; });
    if (known) continue;
    seen.emplace_back(&layout, &shape);
    for (size_t d = 0; d < shape.size(); ++d) {
      AddLengths(layout.dims[d], shape[d], layout.matrix, lengths);
    }
  }
  std::map<std::vector<int64_t>, uint32_t> numbers;
  std::vector<uint32_t> classes;
  for (std::vector<int64_t>& of : lengths) {
    const auto next = static_cast<uint32_t>(numbers.size());
    classes.push_back(numbers.try_emplace(std::move(of), next).first->second);
  }
  return classes;
}

}  // namespace dt::scheduler
