#include "common/graph/initial_values.h"

#include <algorithm>
#include <cmath>

#include "common/base/hash.h"
#include "common/base/philox.h"

namespace dt {
namespace {

void Scale(std::vector<float>& values, double by) {
  for (float& v : values) v = static_cast<float>(v * by);
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
  switch (spec.init.kind) {
    case InitKind::kZeros:
      break;
    case InitKind::kConstant:
      values.assign(values.size(), spec.init.value);
      break;
    case InitKind::kNormal:
      FillNormal(stream, 0, values);
      Scale(values, spec.init.value);
      break;
    case InitKind::kUniform:
      FillUniform(stream, 0, values);
      Scale(values, spec.init.value);
      break;
    case InitKind::kXavierNormal:
      FillNormal(stream, 0, values);
      Scale(values, std::sqrt(2.0 / fans));
      break;
    case InitKind::kXavierUniform:
      FillUniform(stream, 0, values);
      Scale(values, std::sqrt(6.0 / fans));
      break;
  }
  return values;
}

}  // namespace dt
