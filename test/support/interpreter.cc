#include "test/support/interpreter.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "common/base/check.h"
#include "common/base/philox.h"
#include "common/graph/initial_values.h"
#include "ops/op_spec.h"

namespace dt::test {
namespace {

Shape SizesOf(const SymShape& shape, const SliceData& slice) {
  Shape sizes;
  for (const Dim& dim : shape) {
    const int64_t symbol = dim.symbol == kConstant ? 1
                           : dim.symbol == kBatch  ? slice.samples
                                                   : slice.sizes.at(dim.symbol);
    sizes.push_back(dim.times * symbol);
  }
  return sizes;
}

class Draws {
 public:
  explicit Draws(uint64_t seed) : seed_(seed) {}
  uint32_t Next() { return Philox(seed_, 0, count_++)[0]; }
  uint32_t Below(uint32_t n) { return Next() % n; }
  double Real() { return 2.0 * ToUniform(Next()) - 1.0; }

 private:
  uint64_t seed_, count_ = 0;
};

// The ids of one lookup, and the uses of each row.
struct Ids {
  std::vector<uint32_t> index, ends, row_ends, row_order;
};

Ids RandomIds(const LookupSpec& spec, uint32_t samples, uint32_t rows, Draws& draws) {
  Ids ids;
  for (uint32_t b = 0; b < samples; ++b) {
    const uint32_t length = spec.length > 0 ? spec.length : draws.Below(4);
    for (uint32_t i = 0; i < length; ++i) ids.index.push_back(draws.Below(rows));
    ids.ends.push_back(static_cast<uint32_t>(ids.index.size()));
  }
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t i = 0; i < ids.index.size(); ++i) {
      if (ids.index[i] == row) ids.row_order.push_back(i);
    }
    ids.row_ends.push_back(static_cast<uint32_t>(ids.row_order.size()));
  }
  return ids;
}

HostTensor OfNumbers(const std::vector<uint32_t>& numbers) {
  HostTensor tensor = HostTensor::Of(DType::kU32, {static_cast<int64_t>(numbers.size())});
  std::ranges::copy(numbers, tensor.view().as<uint32_t>().begin());
  return tensor;
}

HostTensor RandomFloats(const SymShape& shape, const SliceData& slice, Draws& draws) {
  HostTensor tensor = HostTensor::Of(DType::kF32, SizesOf(shape, slice));
  for (size_t i = 0; i < tensor.size(); ++i) tensor.set(i, draws.Real());
  return tensor;
}

// Distinct keys of a pull; rows of a table on a worker.
constexpr uint32_t kRows = 5, kTableRows = 7;

// Distinct row numbers in random order.
std::vector<uint32_t> SomeRows(Draws& draws) {
  std::vector<uint32_t> all(kTableRows);
  std::iota(all.begin(), all.end(), 0u);
  for (uint32_t i = 0; i < kRows; ++i) std::swap(all[i], all[i + draws.Below(kTableRows - i)]);
  all.resize(kRows);
  return all;
}

HostTensor RandomRows(const Graph& graph, const InputSpec& input, const SliceData& slice,
                      Draws& draws) {
  HostTensor tensor = HostTensor::Of(DType::kU32, SizesOf(graph.value(input.value).shape, slice));
  const std::span<uint32_t> ids = tensor.view().as<uint32_t>();
  const size_t fields = input.rows.size();
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = draws.Below(static_cast<uint32_t>(input.rows[i % fields]));
  }
  return tensor;
}

// Only a few keys, so that many samples have equal ones.
HostTensor RandomKeys(const SymShape& shape, const SliceData& slice, Draws& draws) {
  HostTensor tensor = HostTensor::Of(DType::kU32, SizesOf(shape, slice));
  for (uint32_t& half : tensor.view().as<uint32_t>()) half = draws.Below(2);
  return tensor;
}

HostTensor InputOf(const Graph& graph, const InputSpec& input, const std::vector<Ids>& ids,
                   const SliceData& slice, Draws& draws) {
  switch (input.kind) {
    case InputKind::kLookupIndex:
      return OfNumbers(ids[input.lookup].index);
    case InputKind::kLookupEnds:
      return OfNumbers(ids[input.lookup].ends);
    case InputKind::kRowEnds:
      return OfNumbers(ids[input.lookup].row_ends);
    case InputKind::kRowOrder:
      return OfNumbers(ids[input.lookup].row_order);
    case InputKind::kRowNumbers:
      return OfNumbers(SomeRows(draws));
    case InputKind::kIds:
      return RandomRows(graph, input, slice, draws);
    case InputKind::kKeys:
      return RandomKeys(graph.value(input.value).shape, slice, draws);
    case InputKind::kStepsSinceUpdate:
      return OfNumbers({1, 2, 7, 1, 100});
    default:
      break;
  }
  HostTensor tensor = RandomFloats(graph.value(input.value).shape, slice, draws);
  for (size_t i = 0; i < tensor.size(); ++i) {
    if (input.kind == InputKind::kLabel) tensor.set(i, tensor.at(i) > 0 ? 1 : 0);
    if (input.kind == InputKind::kSampleWeight) tensor.set(i, 1.5 + tensor.at(i));
  }
  return tensor;
}

void RunKernel(const Node& node, std::span<const TensorView> inputs,
               std::span<const TensorView> outputs, const RunInfo& run, TaskPool& pool) {
  if (TraitsOf(node.op).kind == OpKind::kCopy) {
    const TensorView& to = node.outputs.empty() ? inputs[1] : outputs[0];
    std::memcpy(to.data, inputs[0].data, to.bytes());
    return;
  }
  const Kernel kernel = FindKernel(node.op);
  DT_CHECK_MSG(kernel != nullptr, "operator {} has no kernel", node.op);
  std::vector<std::byte> scratch;
  KernelContext context{node, inputs, outputs, run, pool, scratch};
  kernel(context);
}

}  // namespace

SliceData RandomSlice(const Graph& graph, uint32_t samples, uint64_t seed) {
  Draws draws(seed);
  SliceData slice;
  slice.samples = samples;
  std::vector<Ids> ids;
  for (const LookupSpec& lookup : graph.lookups) {
    ids.push_back(RandomIds(lookup, samples, kRows, draws));
  }
  for (SymbolIndex s = kBatch + 1; s < graph.symbols.size(); ++s) {
    slice.sizes[s] = graph.symbols[s].starts_with("R.") ? kTableRows : kRows;
    for (size_t l = 0; l < graph.lookups.size(); ++l) {
      if (graph.symbols[s] != "N." + graph.lookups[l].name) continue;
      slice.sizes[s] = static_cast<int64_t>(ids[l].index.size());
    }
  }
  for (const InputSpec& input : graph.inputs) {
    slice.inputs[input.value] = InputOf(graph, input, ids, slice, draws);
  }
  return slice;
}

Tensors FirstParameters(const Graph& graph, uint64_t seed) {
  Tensors tensors;
  for (const ParameterSpec& p : graph.parameters) {
    const Value& value = graph.value(p.value);
    HostTensor tensor = HostTensor::Of(DType::kF32, SizesOf(value.shape, {}));
    const std::vector<float> values = InitialValues(seed, value, p);
    std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    tensors[p.value] = std::move(tensor);
  }
  for (const ReplicaSpec& replica : graph.replicas) tensors[replica.value] = tensors[replica.of];
  Draws draws(seed);
  for (const TableUse& table : graph.tables) {
    if (table.store == kNone) continue;
    const int64_t width = graph.value(table.store).shape[1].times;
    HostTensor rows = HostTensor::Of(DType::kF32, {kTableRows, width});
    for (size_t i = 0; i < rows.size(); ++i) rows.set(i, std::fabs(draws.Real()));
    tensors[table.store] = std::move(rows);
  }
  return tensors;
}

Graph InFloat64(Graph graph) {
  for (Value& value : graph.values) {
    if (value.dtype == DType::kF32) value.dtype = DType::kF64;
  }
  return graph;
}

Tensors InFloat64(Tensors tensors) {
  for (auto& [index, tensor] : tensors) {
    if (tensor.dtype != DType::kF32) continue;
    HostTensor wide = HostTensor::Of(DType::kF64, tensor.shape);
    for (size_t i = 0; i < wide.size(); ++i) wide.set(i, tensor.at(i));
    tensor = std::move(wide);
  }
  return tensors;
}

void Interpreter::RunNode(const Node& node, const SliceData& sizes, Tensors& values,
                          const RunInfo& run) {
  std::vector<TensorView> inputs, outputs;
  for (const ValueIndex v : node.inputs) inputs.push_back(values.at(v).view());
  for (const ValueIndex v : node.outputs) {
    const Value& value = graph_.value(v);
    HostTensor& tensor = values[v] = HostTensor::Of(value.dtype, SizesOf(value.shape, sizes));
    outputs.push_back(tensor.view());
  }
  RunKernel(node, inputs, outputs, run, pool_);
}

Tensors Interpreter::RunSlice(const SliceData& slice, Tensors& parameters, RunInfo run) {
  run.first_sample = slice.first_sample;
  Tensors values = slice.inputs;
  values.insert(parameters.begin(), parameters.end());
  for (const Node& node : graph_.nodes) {
    if (node.phase == Phase::kSlice) RunNode(node, slice, values, run);
  }
  return values;
}

void Interpreter::Communicate(const Node& node, StepResult& result) {
  const ValueIndex in = node.inputs[0], out = node.outputs[0];
  HostTensor joined = result.slices[0].at(in);
  if (node.op == "gather_slices") {
    joined.shape.insert(joined.shape.begin(), static_cast<int64_t>(result.slices.size()));
  }
  for (size_t k = 1; k < result.slices.size(); ++k) {
    const HostTensor& piece = result.slices[k].at(in);
    if (node.op == "gather_slices") {
      joined.bytes.insert(joined.bytes.end(), piece.bytes.begin(), piece.bytes.end());
      continue;
    }
    for (size_t i = 0; i < joined.size(); ++i) joined.set(i, joined.at(i) + piece.at(i));
  }
  result.step[out] = std::move(joined);
}

int64_t Interpreter::SumRows(const Node& node, Step step, StepResult& result) {
  const Value& in = graph_.value(node.inputs[0]);
  const auto dim = static_cast<size_t>(in.shape[1].times);
  std::vector<uint32_t> numbers, steps_since_update;
  for (Tensors& slice : result.slices) {
    for (const uint32_t number : slice.at(node.inputs[1]).view().as<uint32_t>()) {
      if (std::ranges::find(numbers, number) == numbers.end()) numbers.push_back(number);
    }
  }
  const auto rows = static_cast<int64_t>(numbers.size());
  HostTensor& sums = result.step[node.outputs[0]] =
      HostTensor::Of(in.dtype, {rows, static_cast<int64_t>(dim)});
  std::vector<bool> begun(numbers.size(), false);
  for (Tensors& slice : result.slices) {
    const HostTensor& grads = slice.at(node.inputs[0]);
    size_t from = 0;
    for (const uint32_t number : slice.at(node.inputs[1]).view().as<uint32_t>()) {
      const size_t row = std::ranges::find(numbers, number) - numbers.begin();
      for (size_t i = row * dim; i < (row + 1) * dim; ++i, ++from) {
        sums.set(i, begun[row] ? sums.at(i) + grads.at(from) : grads.at(from));
      }
      begun[row] = true;
    }
  }
  for (const uint32_t number : numbers) {
    const auto [last, is_new] = last_update_.try_emplace({node.inputs[1], number}, step);
    steps_since_update.push_back(static_cast<uint32_t>(is_new ? step + 1 : step - last->second));
    last->second = step;
  }
  result.step[node.outputs[1]] = OfNumbers(numbers);
  result.step[node.outputs[2]] = OfNumbers(steps_since_update);
  return rows;
}

StepResult Interpreter::RunStep(const std::vector<SliceData>& slices, Tensors& parameters,
                                const RunInfo& run) {
  StepResult result;
  for (const SliceData& slice : slices) result.slices.push_back(RunSlice(slice, parameters, run));
  result.step = parameters;
  // With a single slice, step nodes read its values directly.
  if (slices.size() == 1) result.step.insert(result.slices[0].begin(), result.slices[0].end());
  SliceData sizes;  // A step has no samples, only the number of rows of its slices.
  for (const Node& node : graph_.nodes) {
    if (node.phase == Phase::kSlice) continue;
    if (node.op == "sum_rows") {
      const SymbolIndex rows = graph_.value(node.outputs[0]).shape[0].symbol;
      sizes.sizes[rows] = SumRows(node, run.step, result);
    } else if (node.phase == Phase::kJoin) {
      Communicate(node, result);
    } else {
      RunNode(node, sizes, result.step, run);
    }
  }
  for (auto& [value, tensor] : parameters) tensor = result.step.at(value);
  return result;
}

Tensors RunOnSlots(const SlotRun& what, const SliceData& slice, const Tensors& parameters,
                   const RunInfo& run) {
  const Plan& plan = what.plan;
  const Graph& graph = plan.graph;
  Tensors outside = slice.inputs;
  outside.insert(parameters.begin(), parameters.end());
  std::vector<TensorView> views(graph.values.size());
  std::vector<size_t> bytes(plan.slot_count, 0);
  for (size_t v = 0; v < views.size(); ++v) {
    views[v] = {graph.values[v].dtype, SizesOf(graph.values[v].shape, slice), nullptr};
    if (plan.slot[v] == kNone) continue;
    bytes[plan.slot[v]] = std::max(bytes[plan.slot[v]], views[v].bytes());
  }
  std::vector<std::vector<std::byte>> slots;
  for (const size_t size : bytes) slots.emplace_back(size, std::byte{0xAB});
  for (size_t v = 0; v < views.size(); ++v) {
    const auto found = outside.find(static_cast<ValueIndex>(v));
    if (found != outside.end()) views[v] = found->second.view();
    if (plan.slot[v] != kNone) views[v].data = slots[plan.slot[v]].data();
  }
  TaskPool pool(1);
  for (const Subgraph& subgraph : what.pass) {
    if (subgraph.phase != Phase::kSlice) continue;
    for (const NodeIndex n : subgraph.nodes) {
      std::vector<TensorView> inputs, outputs;
      for (const ValueIndex v : graph.nodes[n].inputs) inputs.push_back(views[v]);
      for (const ValueIndex v : graph.nodes[n].outputs) outputs.push_back(views[v]);
      RunKernel(graph.nodes[n], inputs, outputs, run, pool);
    }
  }
  Tensors left;
  for (ValueIndex v = 0; v < what.wanted.size(); ++v) {
    if (!what.wanted[v]) continue;
    HostTensor tensor = HostTensor::Of(views[v].dtype, views[v].shape);
    if (views[v].data != nullptr)
      std::memcpy(tensor.bytes.data(), views[v].data, tensor.bytes.size());
    left[v] = std::move(tensor);
  }
  return left;
}

}  // namespace dt::test
