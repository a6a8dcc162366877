// The names of a list's items as one text, "first|second|third", joined at compile time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace dt {

struct EveryItem {
  constexpr bool operator()(const auto& /*item*/) const { return true; }
};

// The joined names and a last '|', which kJoinedNames leaves out.
template <const auto& kItems, class Keep>
inline constexpr auto kJoinedCharacters = [] {
  constexpr size_t kSize = [] {
    size_t size = 0;
    for (const auto& item : kItems) size += Keep()(item) ? item.name.size() + 1 : 0;
    return size;
  }();
  std::array<char, kSize> joined{};
  char* at = joined.data();
  for (const auto& item : kItems) {
    if (!Keep()(item)) continue;
    at = std::ranges::copy(item.name, at).out;
    *at++ = '|';
  }
  return joined;
}();

// `kItems` is an array of structs with a member `name`. Items for which `Keep` is false are left
// out.
template <const auto& kItems, class Keep = EveryItem>
inline constexpr std::string_view kJoinedNames(kJoinedCharacters<kItems, Keep>.data(),
                                               kJoinedCharacters<kItems, Keep>.size() - 1);

}  // namespace dt
