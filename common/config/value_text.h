// Values of the job file as text, for fingerprints: equal text means equal values.
#pragma once

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/specs/init.h"
#include "common/specs/strategy.h"

namespace dt {

// Floats have the fewest digits that identify them, so equal text means equal bits.
template <class T>
std::string ValueText(const T& value) {
  if constexpr (requires { NameOf(value); }) {
    return std::string(NameOf(value));
  } else if constexpr (std::is_enum_v<T>) {
    return fmt::format("{}", static_cast<int>(value));
  } else {
    return fmt::format("{}", value);
  }
}
inline std::string ValueText(const Strategy& value) { return TextOf(value); }
inline std::string ValueText(Duration value) { return fmt::format("{}", value.count()); }
inline std::string ValueText(char value) { return fmt::format("{}", static_cast<int>(value)); }
inline std::string ValueText(const InitSpec& init) {
  if (init.kind == InitKind::kZeros) return std::string(NameOf(init.kind));
  return fmt::format("{{{}: {}}}", NameOf(init.kind), init.value);
}

struct AttrText {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return fmt::format("{}", v); }
  std::string operator()(double v) const { return fmt::format("{}", v); }
  std::string operator()(const std::string& v) const {
    const bool plain =
        std::ranges::all_of(v, [](char c) { return c > ' ' && c != ',' && c != '"'; });
    return plain ? v : fmt::format("\"{}\"", v);
  }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    std::vector<std::string> items;
    for (const T& item : list) items.push_back((*this)(item));
    return "[" + JoinText(items, ", ") + "]";
  }
};
inline std::string ValueText(const std::vector<std::string>& texts) { return AttrText()(texts); }
inline std::string ValueText(const std::vector<float>& numbers) {
  std::vector<std::string> items;
  for (const float number : numbers) items.push_back(fmt::format("{}", number));
  return "[" + JoinText(items, ", ") + "]";
}

}  // namespace dt
