#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "common/base/check.h"
#include "ops/op_spec.h"
#include "ops/sharding.h"
#include "scheduler/passes/parallel/parallel_graph.h"

namespace dt::scheduler {
namespace {

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
    for (InputSpec& input : local_.inputs) SetColumns(input);
    for (ParameterSpec& parameter : local_.parameters) SetPart(parameter);
    for (NodeIndex n = 0; n < local_.nodes.size(); ++n) {
      if (TraitsOf(local_.nodes[n].op).kind == OpKind::kCommunication) {
        SetGroup(n);
      } else {
        SetAttrs(n);
      }
    }
    return std::move(local_);
  }

 private:
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
      Range range{0, size};
      for (const AxisIndex axis : dim[f].axes) range = EvenPart(range, matrix[axis], at[axis]);
      local.times *= range.size();
    }
    return local;
  }
  static int64_t OuterSize(const Dim& whole, const CutDim& dim) {
    int64_t inner = 1;
    for (size_t f = 1; f < dim.size(); ++f) inner *= dim[f].size;
    return whole.times / inner;
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

  // The columns of the data that this device reads.
  void SetColumns(InputSpec& input) const {
    if (input.columns.size() < 2) return;
    const Range columns = PartOf(input.value).back();
    input.columns = {input.columns.begin() + columns.begin, input.columns.begin() + columns.end};
  }

  void SetPart(ParameterSpec& parameter) const {
    const Box box = PartOf(parameter.value);
    const RankList holders = HeldBy(parallel_.layouts[parameter.value], device_).group;
    parameter.copy = holders.front() != device_;
    Shape whole, first;
    bool divided = false;
    for (size_t d = 0; d < box.size(); ++d) {
      whole.push_back(parallel_.graph.value(parameter.value).shape[d].times);
      first.push_back(box[d].begin);
      divided = divided || box[d].size() != whole.back();
    }
    if (!divided) return;
    parameter.whole = std::move(whole);
    parameter.first = std::move(first);
  }

  void SetGroup(NodeIndex n) {
    Node& node = local_.nodes[n];
    const DeviceMatrix& matrix = parallel_.cuts[n].matrix;
    AxisList axes;
    for (const int64_t axis : IntsAttr(node.attrs, "axes")) {
      axes.push_back(static_cast<AxisIndex>(axis));
    }
    const RankList group = GroupOf(matrix, axes, device_);
    node.attrs["group"] = std::vector<int64_t>(group.begin(), group.end());
    node.attrs.erase("matrix");
    std::vector<int64_t> lengths;
    for (const AxisIndex axis : axes) lengths.push_back(matrix[axis]);
    node.attrs["axes"] = lengths;
    node.attrs["number"] = static_cast<int64_t>(n);
  }

  void SetAttrs(NodeIndex n) {
    Node& node = local_.nodes[n];
    const NodeCut& cut = parallel_.cuts[n];
    const Result<Sharding> rule = ShardingOf(parallel_.graph, parallel_.graph.nodes[n]);
    DT_CHECK(rule.ok());
    for (const ShardAttr& attr : rule->attrs) {
      if (!attr.first) SetAttr(node, attr, *rule, cut);
    }
    SetFirst(node, *rule, cut);
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

}  // namespace

Graph PositionGraph(const ParallelGraph& parallel, DeviceIndex device) {
  return Position(parallel, device).Make();
}

}  // namespace dt::scheduler
