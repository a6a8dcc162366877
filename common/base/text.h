// Small text functions that several roles need.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dt {

// The candidate with the smallest edit distance to `word` (a swap of neighbours counts as one
// edit), if the distance is at most a third of the word's length or 1; otherwise empty.
std::string LikelySpelling(std::string_view word, std::span<const std::string> candidates);

// "; did you mean "x"?", or empty if no candidate is close.
std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

std::vector<std::string_view> SplitText(std::string_view text, char separator);
// The name of an enumerator in "first|second|third".
template <class Enum>
std::string_view ChoiceOf(std::string_view names, Enum value) {
  return SplitText(names, '|')[static_cast<size_t>(value)];
}
std::string JoinText(std::span<const std::string> parts, std::string_view separator);
// Shell-like pattern: `*` matches any run of characters, `?` any one character.
bool MatchesPattern(std::string_view text, std::string_view pattern);
// The text made safe for a terminal or a log: paths are replaced as by WithWrittenPaths; control
// characters except the newline, and bytes that are not UTF-8, are written as \x1b.
std::string Printable(std::string_view text);
// 16 lower-case hex digits.
std::string HexOf(uint64_t value);
// "1.5 GiB", "12 KiB", "3 B".
std::string BytesText(uint64_t bytes);

}  // namespace dt
