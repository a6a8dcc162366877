#include "common/layout/sample_part.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace dt {

Range SamplesOf(const SamplePart& part, int64_t n, uint32_t devices, DeviceIndex device) {
  const int64_t unit = (n + devices - 1) / devices;
  Range units{0, devices};
  for (size_t i = 0; i + 1 < part.size(); i += 2) {
    units = EvenPart(units, part[i], device / part[i + 1] % part[i]);
  }
  return {std::min(n, units.begin * unit), std::min(n, units.end * unit)};
}

bool HasOwnSamples(const Layout& layout) {
  if (!layout.partial.empty()) return false;
  for (size_t d = 1; d < layout.dims.size(); ++d) {
    for (const CutFactor& factor : layout.dims[d]) {
      for (const AxisIndex axis : factor.axes) {
        if (layout.matrix[axis] > 1) return false;
      }
    }
  }
  if (layout.dims.empty() || layout.dims[0].empty()) return true;
  const uint32_t devices = DeviceCount(layout.matrix);
  for (DeviceIndex i = 0; i < devices; ++i) {
    Range units{0, int64_t{devices}};
    const std::vector<uint32_t> at = CoordinatesOf(layout.matrix, i);
    for (const AxisIndex axis : layout.dims[0][0].axes) {
      units = EvenPart(units, layout.matrix[axis], at[axis]);
    }
    if (int64_t{i} < units.begin || units.end <= int64_t{i}) return false;
  }
  return true;
}

Layout SamplesInOrder(uint32_t devices, size_t dims) {
  Layout layout{.matrix = {devices}, .dims = std::vector<CutDim>(dims)};
  layout.dims[0] = {{.axes = {0}}};
  return layout;
}

std::string SymbolOf(const SamplePart& part) {
  std::string name = "B";
  for (size_t i = 0; i + 1 < part.size(); i += 2) {
    name += fmt::format("/{}s{}", part[i], part[i + 1]);
  }
  return name;
}

SamplePart SamplePartOf(std::string_view symbol) {
  if (!symbol.starts_with("B/")) return {};
  SamplePart part;
  const char* at = symbol.data() + 1;
  const char* const end = symbol.data() + symbol.size();
  while (at != end) {
    // "/" and "s" stand before the numbers of a pair.
    if (*at != (part.size() % 2 == 0 ? '/' : 's')) return {};
    int64_t number = 0;
    const auto [next, error] = std::from_chars(at + 1, end, number);
    if (error != std::errc() || number < 1) return {};
    part.push_back(number);
    at = next;
  }
  return part.size() % 2 == 0 ? part : SamplePart();
}

}  // namespace dt
