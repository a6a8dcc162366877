#include "worker/memory/parameters.h"

#include <algorithm>
#include <set>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/text.h"
#include "common/graph/initial_values.h"

namespace dt::worker {

namespace {

// The values that nodes other than updates read, directly or through a replica.
std::set<ValueIndex> ReadInSlices(const Graph& graph) {
  std::set<ValueIndex> read;
  for (const Node& node : graph.nodes) {
    if (node.phase == Phase::kSlice) read.insert(node.inputs.begin(), node.inputs.end());
  }
  for (const ReplicaSpec& replica : graph.replicas) {
    if (read.contains(replica.value)) read.insert(replica.of);
  }
  return read;
}

}  // namespace

Parameters::Parameters(const Plan& plan) {
  const std::set<ValueIndex> read = ReadInSlices(plan.graph);
  for (const ParameterSpec& spec : plan.graph.parameters) {
    const Value& value = plan.graph.value(spec.value);
    DT_CHECK_MSG(value.dtype == DType::kF32, "parameter {} is not f32", value.name);
    Array array{.name = value.name, .value = spec.value, .shape = {}, .values = {}};
    for (const Dim& dim : value.shape) array.shape.push_back(dim.times);
    array.values = InitialValues(plan.seed, value, spec);
    array.optimizer_state = !spec.trained && !read.contains(spec.value);
    arrays_.push_back(std::move(array));
  }
}

uint64_t Parameters::bytes() const {
  uint64_t bytes = 0;
  for (const Array& array : arrays_) bytes += array.values.size() * sizeof(float);
  return bytes;
}

std::vector<const Parameters::Array*> Parameters::ByName() const {
  std::vector<const Array*> sorted;
  for (const Array& array : arrays_) sorted.push_back(&array);
  std::ranges::sort(sorted, {}, [](const Array* a) { return std::string_view(a->name); });
  return sorted;
}

std::string Parameters::Checksum() const {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  const auto add = [&](const void* data, size_t bytes) {
    XXH3_128bits_update(&state, data, bytes);
  };
  for (const Array* array : ByName()) {
    const uint64_t sizes[] = {array->name.size(), array->shape.size()};
    add(sizes, sizeof(sizes));
    add(array->name.data(), array->name.size());
    add(array->shape.data(), array->shape.size() * sizeof(int64_t));
    add(array->values.data(), array->values.size() * sizeof(float));
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return HexOf(hash.high64) + HexOf(hash.low64);
}

}  // namespace dt::worker
