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
