#include "ops/cuda/call.h"

#include <algorithm>

#include "common/base/hash.h"

namespace dt {
namespace {

static_assert(static_cast<uint8_t>(DType::kF32) == kCudaF32);
static_assert(static_cast<uint8_t>(DType::kU32) == kCudaU32);
static_assert(static_cast<uint8_t>(DType::kBf16) == kCudaBf16);

struct Fill {
  CudaAttr& to;
  void operator()(bool value) const {
    to.kind = CudaAttr::Kind::kBool;
    to.number = value ? 1 : 0;
  }
  void operator()(int64_t value) const {
    to.kind = CudaAttr::Kind::kInt;
    to.number = value;
  }
  void operator()(double value) const {
    to.kind = CudaAttr::Kind::kFloat;
    to.real = value;
  }
  void operator()(const std::string& value) const {
    to.kind = CudaAttr::Kind::kText;
    to.text = value.c_str();
    to.number = static_cast<int64_t>(HashString(value));
  }
  void operator()(const std::vector<int64_t>& value) const {
    to.kind = CudaAttr::Kind::kInts;
    to.ints = value.data();
    to.count = value.size();
  }
  // No CUDA kernel has such attributes.
  void operator()(const std::vector<double>&) const {}
  void operator()(const std::vector<std::string>&) const {}
};

}  // namespace

Status CudaNode::AddTensors(const Graph& graph, const std::vector<ValueIndex>& values,
                            std::span<const int64_t> extents, std::vector<CudaTensor>* to) {
  for (const ValueIndex v : values) {
    const Value& value = graph.value(v);
    if (value.shape.size() > kCudaRankMax || value.dtype == DType::kF64) {
      return Invalid("\"{}\", {} {}, cannot be given to a CUDA kernel", value.name,
                     NameOf(value.dtype), ShapeText(graph, value.shape));
    }
    CudaTensor& tensor = to->emplace_back();
    tensor.dtype = static_cast<uint8_t>(value.dtype);
    tensor.rank = static_cast<uint8_t>(value.shape.size());
    for (size_t i = 0; i < value.shape.size(); ++i) {
      const Dim& dim = value.shape[i];
      DT_CHECK(dim.symbol < extents.size());
      tensor.symbol[i] = static_cast<int32_t>(dim.symbol);
      tensor.times[i] = dim.times;
      tensor.extent[i] = dim.times * extents[dim.symbol];
    }
  }
  return OkStatus();
}

void CudaNode::AddAttrs() {
  for (const auto& [name, value] : attrs_) {
    CudaAttr& attr = plain_attrs_.emplace_back();
    attr.name = name.c_str();
    std::visit(Fill{attr}, value);
  }
}

Result<CudaNode> CudaNode::Make(const Graph& graph, const Node& node,
                                std::span<const int64_t> extents) {
  if (extents.size() > kCudaSymbolsMax) {
    return Invalid("a graph for a CUDA card may have {} dimensions that vary, this one has {}",
                   kCudaSymbolsMax, extents.size());
  }
  CudaNode made;
  made.attrs_ = node.attrs;
  made.attrs_["node"] = node.name;
  DT_TRY_STATUS(made.AddTensors(graph, node.inputs, extents, &made.inputs_));
  DT_TRY_STATUS(made.AddTensors(graph, node.outputs, extents, &made.outputs_));
  made.AddAttrs();
  made.call_.inputs = made.inputs_.data();
  made.call_.input_count = made.inputs_.size();
  made.call_.outputs = made.outputs_.data();
  made.call_.output_count = made.outputs_.size();
  made.call_.attrs = made.plain_attrs_.data();
  made.call_.attr_count = made.plain_attrs_.size();
  return made;
}

CudaRun CudaRunOf(const RunInfo& run, std::span<const int64_t> sizes) {
  DT_CHECK(sizes.size() <= kCudaSymbolsMax);
  CudaRun out;
  out.seed = run.seed;
  out.step = run.step;
  out.update_step = run.update_step();
  out.first_sample = run.first_sample;
  out.step_samples = run.step_samples;
  out.lr_scale = run.lr_scale;
  out.training = run.training ? 1 : 0;
  std::ranges::copy(sizes, out.sizes);
  return out;
}

}  // namespace dt
