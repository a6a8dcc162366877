#include "common/graph/initial_values.h"

#include <algorithm>
#include <cmath>

#include "common/base/hash.h"
#include "common/base/philox.h"

namespace dt {
namespace {

// Calls fill(run, first) for each run of elements that are neighbours in the whole parameter.
void ForEachRun(const Value& value, const ParameterSpec& spec, std::span<float> values,
                const auto& fill) {
  if (spec.whole.empty()) return fill(values, uint64_t{0});
  const size_t dims = value.shape.size();
  const auto length = static_cast<size_t>(value.shape[dims - 1].times);
  std::vector<int64_t> at(dims);
  for (size_t done = 0; done < values.size(); done += length) {
    int64_t first = 0;
    for (size_t d = 0; d < dims; ++d) first = first * spec.whole[d] + spec.first[d] + at[d];
    fill(values.subspan(done, length), static_cast<uint64_t>(first));
    for (size_t d = dims - 1; d-- > 0;) {
      if (++at[d] < value.shape[d].times) break;
      at[d] = 0;
    }
  }
}

}  // namespace

std::vector<float> InitialValues(uint64_t seed, const Value& value, const ParameterSpec& spec) {
  int64_t count = 1;
  for (const Dim& dim : value.shape) {
    DT_CHECK_MSG(dim.symbol == kConstant, "parameter {} has a symbolic shape", value.name);
    count *= dim.times;
  }
  std::vector<float> values(static_cast<size_t>(count), 0.0f);
  const uint64_t stream = StreamKey(seed, HashString("parameter"), HashString(value.name));
  // Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks"
  // (2010).
  const double fans = static_cast<double>(std::max<int64_t>(1, spec.fan_in + spec.fan_out));
  const auto normal = [&](double scale) {
    ForEachRun(value, spec, values, [&](std::span<float> run, uint64_t first) {
      FillNormal(stream, 0, run, first);
      for (float& v : run) v = static_cast<float>(v * scale);
    });
  };
  const auto uniform = [&](double scale) {
    ForEachRun(value, spec, values, [&](std::span<float> run, uint64_t first) {
      FillUniform(stream, 0, run, first);
      for (float& v : run) v = static_cast<float>(v * scale);
    });
  };
  switch (spec.init.kind) {
    case InitKind::kZeros:
      break;
    case InitKind::kConstant:
      values.assign(values.size(), spec.init.value);
      break;
    case InitKind::kNormal:
      normal(spec.init.value);
      break;
    case InitKind::kUniform:
      uniform(spec.init.value);
      break;
    case InitKind::kXavierNormal:
      normal(std::sqrt(2.0 / fans));
      break;
    case InitKind::kXavierUniform:
      uniform(std::sqrt(6.0 / fans));
      break;
  }
  return values;
}

}  // namespace dt
