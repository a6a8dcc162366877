// The names of a list's items as one text, "first|second|third", joined by the compiler.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace dt {

struct EveryItem {
  constexpr bool operator()(const auto& /*item*/) const { return true; }
};

// Ends with a '|' that kJoinedNames leaves out.
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

// `kItems` is an array of structs with a `name`; those that `Keep` leaves out are not named.
template <const auto& kItems, class Keep = EveryItem>
inline constexpr std::string_view kJoinedNames(kJoinedCharacters<kItems, Keep>.data(),
                                               kJoinedCharacters<kItems, Keep>.size() - 1);

}  // namespace dt
