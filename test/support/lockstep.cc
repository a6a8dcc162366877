#include "test/support/lockstep.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "ops/op_spec.h"
#include "test/support/held_tensor.h"
#include "test/support/positions.h"

namespace dt::test {
namespace {

HostTensor Cut(const HostTensor& of, const Positions& positions) {
  HostTensor part = HostTensor::Of(of.dtype, LengthsOf(positions));
  const size_t size = SizeOf(of.dtype);
  ForEachPosition(positions, of.shape, [&](size_t to, size_t from) {
    std::memcpy(part.bytes.data() + to * size, of.bytes.data() + from * size, size);
  });
  return part;
}

// Dimensions of samples are divided as if there were a full unit for every device.
Positions PositionsOf(const Layout& layout, const SymShape& symbols, const Shape& shape,
                      DeviceIndex device) {
  const int64_t devices = DeviceCount(layout.matrix);
  Shape full = shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (symbols[d].symbol != kBatch) continue;
    const int64_t samples = shape[d] / symbols[d].times;
    full[d] = (samples + devices - 1) / devices * devices * symbols[d].times;
  }
  Positions positions = PositionsIn(SliceOf(layout, full, device));
  for (size_t d = 0; d < shape.size(); ++d) {
    std::erase_if(positions[d], [&](int64_t p) { return p >= shape[d]; });
  }
  return positions;
}

std::span<uint32_t> NumbersIn(HostTensor& tensor) { return tensor.view().as<uint32_t>(); }

HostTensor NumberList(const std::vector<uint32_t>& numbers) {
  HostTensor tensor = HostTensor::Of(DType::kU32, {std::ssize(numbers)});
  std::ranges::copy(numbers, NumbersIn(tensor).begin());
  return tensor;
}

LocalTensor Numbers(const HostTensor& tensor) {
  LocalTensor numbers{tensor.shape, {}};
  for (size_t i = 0; i < tensor.size(); ++i) numbers.values.push_back(tensor.at(i));
  return numbers;
}

HostTensor Tensor(const LocalTensor& numbers, DType dtype) {
  HostTensor tensor = HostTensor::Of(dtype, numbers.shape);
  for (size_t i = 0; i < tensor.size(); ++i) tensor.set(i, numbers.values[i]);
  return tensor;
}

// The data of one device's slice.
class DeviceData {
 public:
  DeviceData(const scheduler::ParallelGraph& parallel, const SliceData& slice, DeviceIndex device)
      : parallel_(parallel), slice_(slice), device_(device) {}

  SliceData Make(const Graph& local) {
    data_ = slice_;
    data_.inputs.clear();
    FindRows();
    for (const InputSpec& input : parallel_.graph.inputs) Bind(input);
    for (SymbolIndex s = kBatch + 1; s < local.symbols.size(); ++s) {
      const SamplePart part = SamplePartOf(local.symbols[s]);
      if (part.empty()) continue;
      data_.sizes[s] = SamplesOf(part, slice_.samples, parallel_.devices, device_).size();
    }
    return std::move(data_);
  }
  const std::vector<std::vector<int64_t>>& rows() const { return rows_; }

 private:
  const Graph& graph() const { return parallel_.graph; }

  // The tensor of the undivided graph.
  const HostTensor& WholeOf(const InputSpec& input) const {
    for (const InputSpec& other : graph().inputs) {
      const bool same = other.kind == input.kind && other.columns == input.columns &&
                        other.lookup == input.lookup && other.table == input.table;
      const auto found = slice_.inputs.find(other.value);
      if (same && found != slice_.inputs.end()) return found->second;
    }
    ADD_FAILURE() << "an input without data";
    return slice_.inputs.begin()->second;
  }
  const InputSpec* Find(InputKind kind, uint32_t lookup) const {
    const auto found = std::ranges::find_if(graph().inputs, [&](const InputSpec& input) {
      return input.kind == kind && input.lookup == lookup;
    });
    return found == graph().inputs.end() ? nullptr : &*found;
  }

  Positions Part(ValueIndex v, const Shape& whole) const {
    return PositionsOf(parallel_.layouts[v], graph().value(v).shape, whole, device_);
  }

  // The samples that a lookup reads here.
  Range Lists(uint32_t lookup) const {
    const InputSpec* const ends = Find(InputKind::kLookupEnds, lookup);
    const std::vector<int64_t> samples = Part(ends->value, {slice_.samples})[0];
    return samples.empty() ? Range() : Range{samples.front(), samples.back() + 1};
  }
  int64_t EndBefore(uint32_t lookup, int64_t sample) const {
    HostTensor ends = WholeOf(*Find(InputKind::kLookupEnds, lookup));
    return sample == 0 ? 0 : NumbersIn(ends)[static_cast<size_t>(sample - 1)];
  }
  // The positions of a lookup's ids that this device has.
  std::vector<int64_t> KeptIds(uint32_t lookup) const {
    const InputSpec& index = *Find(InputKind::kLookupIndex, lookup);
    if (graph().lookups[lookup].length == 0) {
      const Range lists = Lists(lookup);
      return ListOf({{EndBefore(lookup, lists.begin), EndBefore(lookup, lists.end)}});
    }
    return Part(index.value, WholeOf(index).shape)[0];
  }

  void FindRows() {
    std::vector<std::vector<int64_t>> rows(graph().tables.size());
    for (uint32_t l = 0; l < graph().lookups.size(); ++l) {
      HostTensor index = WholeOf(*Find(InputKind::kLookupIndex, l));
      for (const int64_t id : KeptIds(l)) {
        rows[graph().lookups[l].table].push_back(NumbersIn(index)[static_cast<size_t>(id)]);
      }
    }
    for (std::vector<int64_t>& of : rows) {
      std::ranges::sort(of);
      of.erase(std::unique(of.begin(), of.end()), of.end());
    }
    rows_ = std::move(rows);
    for (uint32_t t = 0; t < rows_.size(); ++t) {
      SetSize("U." + graph().tables[t].name, std::ssize(rows_[t]));
    }
    for (uint32_t l = 0; l < graph().lookups.size(); ++l) {
      SetSize("N." + graph().lookups[l].name, std::ssize(KeptIds(l)));
    }
  }
  void SetSize(const std::string& symbol, int64_t size) {
    const auto found = std::ranges::find(graph().symbols, symbol);
    if (found == graph().symbols.end()) return;
    data_.sizes[static_cast<SymbolIndex>(found - graph().symbols.begin())] = size;
  }

  void Bind(const InputSpec& input) {
    HostTensor& to = data_.inputs[input.value];
    const HostTensor& whole = WholeOf(input);
    if (input.lookup != kNone) {
      to = LookupPart(input, whole);
    } else if (input.kind == InputKind::kRows) {
      std::vector<int64_t> columns(static_cast<size_t>(whole.shape[1]));
      std::iota(columns.begin(), columns.end(), 0);
      to = Cut(whole, {rows_[input.table], columns});
    } else {
      to = Cut(whole, Part(input.value, whole.shape));
    }
  }

  HostTensor LookupPart(const InputSpec& input, const HostTensor& whole) {
    const uint32_t l = input.lookup;
    // Who reads the ids of other samples than the lookup does only compares them.
    const InputSpec& index_input = *Find(InputKind::kLookupIndex, l);
    if (input.kind == InputKind::kLookupIndex && input.value != index_input.value) {
      return Cut(whole, Part(input.value, whole.shape));
    }
    const std::vector<int64_t> kept = KeptIds(l);
    const std::vector<int64_t>& rows = rows_[graph().lookups[l].table];
    if (input.kind == InputKind::kLookupEnds) {
      const Range lists = Lists(l);
      HostTensor part = Cut(whole, {ListOf({lists})});
      for (uint32_t& end : NumbersIn(part)) end -= static_cast<uint32_t>(EndBefore(l, lists.begin));
      return part;
    }
    if (input.kind == InputKind::kLookupIndex || input.kind == InputKind::kLookupWeights) {
      HostTensor part = Cut(whole, {kept});
      if (input.kind == InputKind::kLookupWeights) return part;
      for (uint32_t& row : NumbersIn(part)) {
        row = static_cast<uint32_t>(std::ranges::lower_bound(rows, int64_t{row}) - rows.begin());
      }
      return part;
    }
    HostTensor index = WholeOf(*Find(InputKind::kLookupIndex, l));
    std::vector<uint32_t> ends, order;
    for (const int64_t row : rows) {
      for (size_t i = 0; i < kept.size(); ++i) {
        if (NumbersIn(index)[static_cast<size_t>(kept[i])] != row) continue;
        order.push_back(static_cast<uint32_t>(i));
      }
      ends.push_back(static_cast<uint32_t>(order.size()));
    }
    return NumberList(input.kind == InputKind::kRowEnds ? ends : order);
  }

  const scheduler::ParallelGraph& parallel_;
  const SliceData& slice_;
  const DeviceIndex device_;
  SliceData data_;
  std::vector<std::vector<int64_t>> rows_;  // By table.
};

// Adds the terms in their order, or takes the largest.
void ReduceInto(const Node& node, const std::vector<LocalTensor>& terms, LocalTensor& result) {
  const bool max = TextAttr(node.attrs, "reduce", "sum") == "max";
  result = terms[0];
  for (size_t t = 1; t < terms.size(); ++t) {
    ASSERT_EQ(terms[t].shape, result.shape) << node.name;
    for (size_t e = 0; e < result.values.size(); ++e) {
      double& x = result.values[e];
      x = max ? std::max(x, terms[t].values[e]) : x + terms[t].values[e];
    }
  }
}

}  // namespace

Lockstep::Lockstep(const scheduler::ParallelGraph& parallel) : parallel_(parallel) {
  for (DeviceIndex i = 0; i < parallel.devices; ++i) {
    graphs_.push_back(scheduler::PositionGraph(parallel, i));
  }
}

SliceData Lockstep::DataOf(const SliceData& slice, DeviceIndex device) {
  DeviceData data(parallel_, slice, device);
  SliceData made = data.Make(graphs_[device]);
  own_rows_.push_back(data.rows());
  return made;
}

void Lockstep::RunSlice(const SliceData& slice, const Tensors& parameters, const RunInfo& run) {
  data_.clear();
  values_.clear();
  own_rows_.clear();
  for (DeviceIndex i = 0; i < parallel_.devices; ++i) {
    data_.push_back(DataOf(slice, i));
    Tensors values = data_.back().inputs;
    for (const auto& [v, tensor] : parameters) {
      const SymShape& symbols = parallel_.graph.value(v).shape;
      values[v] = Cut(tensor, PositionsOf(parallel_.layouts[v], symbols, tensor.shape, i));
    }
    values_.push_back(std::move(values));
  }
  for (NodeIndex n = 0; n < parallel_.graph.nodes.size(); ++n) {
    if (TraitsOf(parallel_.graph.nodes[n].op).kind == OpKind::kCommunication) {
      Communicate(n);
    } else {
      RunNode(n, run);
    }
    if (testing::Test::HasFatalFailure()) return;
  }
}

void Lockstep::RunNode(NodeIndex n, const RunInfo& run) {
  TaskPool pool(1);
  for (DeviceIndex i = 0; i < parallel_.devices; ++i) {
    const Node& node = graphs_[i].nodes[n];
    RunInfo local = run;
    local.first_sample = data_[i].first_sample;
    const std::vector<int64_t> parts = IntsAttr(node.attrs, "sample_part");
    const Range part = SamplesOf(parts, data_[i].samples, parallel_.devices, i);
    local.first_sample += static_cast<uint64_t>(part.begin);
    local.first_in_slice = static_cast<uint64_t>(part.begin);
    Interpreter(graphs_[i], pool).RunNode(node, data_[i], values_[i], local);
  }
}

int64_t Lockstep::Length(DeviceIndex device, ValueIndex value, size_t dim) const {
  const Dim& of = graphs_[device].value(value).shape[dim];
  if (of.symbol == kConstant) return of.times;
  return of.times *
         (of.symbol == kBatch ? data_[device].samples : data_[device].sizes.at(of.symbol));
}

void Lockstep::Communicate(NodeIndex n) {
  const Node& whole = parallel_.graph.nodes[n];
  const ValueIndex in = whole.inputs[0], out = whole.outputs[0];
  const auto dim = static_cast<size_t>(IntAttr(whole.attrs, "dim", 0));
  for (DeviceIndex i = 0; i < parallel_.devices; ++i) {
    std::vector<LocalTensor> parts;
    size_t at = 0;
    // The part of a divided dimension: parts are as long as the members' results.
    Range own;
    int64_t end = 0;
    const auto group = static_cast<size_t>(IntAttr(whole.attrs, "group", 0));
    for (const DeviceIndex m : graphs_[i].groups[group].members) {
      if (m == i) own = {end, end + Length(m, out, dim)};
      if (m == i) at = parts.size();
      end += Length(m, out, dim);
      parts.push_back(Numbers(values_[m].at(in)));
    }
    LocalTensor result = parts[at];
    if (whole.op == "all_gather") result = JoinedAlong(parts, dim);
    if (whole.op == "all_to_all") {
      for (LocalTensor& part : parts) part = PartOf(part, dim, own);
      result = JoinedAlong(parts, static_cast<size_t>(IntAttr(whole.attrs, "from_dim", 0)));
    }
    if (whole.op == "all_reduce" || whole.op == "reduce_scatter") {
      ReduceInto(whole, parts, result);
    }
    if (whole.op == "take_part" || whole.op == "reduce_scatter") {
      result = PartOf(result, dim, own);
    }
    values_[i][out] = Tensor(result, values_[i].at(in).dtype);
  }
}

HostTensor Lockstep::Joined(ValueIndex value, const Shape& whole) const {
  const Layout& layout = parallel_.layouts[value];
  HostTensor joined = HostTensor::Of(values_[0].at(value).dtype, whole);
  const auto table = std::ranges::find(parallel_.graph.tables, value, &TableUse::row_grad);
  const bool rows = table != parallel_.graph.tables.end();
  for (DeviceIndex i = 0; i < parallel_.devices; ++i) {
    const HostTensor& part = values_[i].at(value);
    const DeviceIndex first = ReplicasOf(layout, i)[0];
    if (first != i) {
      EXPECT_EQ(part, values_[first].at(value)) << "copies of " << value << " differ";
      continue;
    }
    Positions positions = PositionsOf(layout, parallel_.graph.value(value).shape, whole, i);
    if (rows) {
      positions[0] = own_rows_[i][static_cast<size_t>(table - parallel_.graph.tables.begin())];
    }
    EXPECT_EQ(part.shape, LengthsOf(positions)) << parallel_.graph.value(value).name;
    ForEachPosition(positions, whole,
                    [&](size_t from, size_t to) { joined.set(to, joined.at(to) + part.at(from)); });
  }
  return joined;
}

}  // namespace dt::test
