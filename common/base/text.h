// Small things with text that several roles need.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dt {

// The candidate with the least edit distance (a swap of neighbours counts once) to `word`, if near
// enough to be a likely spelling of it (at most a third of its length, at least 1); empty
// otherwise.
std::string LikelySpelling(std::string_view word, std::span<const std::string> candidates);

// "; did you mean "x"?" or nothing.
std::string DidYouMean(std::string_view word, std::span<const std::string> candidates);

std::vector<std::string_view> SplitText(std::string_view text, char separator);
// The name of an enumerator in "first|second|third".
template <class Enum>
std::string_view ChoiceOf(std::string_view names, Enum value) {
  return SplitText(names, '|')[static_cast<size_t>(value)];
}
std::string JoinText(std::span<const std::string> parts, std::string_view separator);
// Shell-like pattern: `*` any run of characters, `?` any one.
bool MatchesPattern(std::string_view text, std::string_view pattern);
// The text made safe for a terminal or a log: paths as WithWrittenPaths gives them; control
// characters other than the newline, and bytes that are not UTF-8, are written as \x1b.
std::string Printable(std::string_view text);
// 16 lower-case hex digits.
std::string HexOf(uint64_t value);
// "1.5 GiB", "12 KiB", "3 B".
std::string BytesText(uint64_t bytes);

}  // namespace dt
