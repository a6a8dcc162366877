#include "common/base/text.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "common/base/written_paths.h"

namespace dt {
namespace {

// Counts insertions, deletions, replacements and swaps of neighbours as one edit each ("optimal
// string alignment").
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

// The length in bytes of the UTF-8 character at the start of `text`; 0 if there is no valid one.
size_t CharacterBytes(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t bytes = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (bytes == 0 || lead > 0xf4 || bytes > text.size()) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong encodings, UTF-16 surrogates, and code points above U+10FFFF are wrong.
  const bool wrong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) ||
                     (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f);
  return wrong ? 0 : bytes;
}

// Whether `text` begins with a control character: C0 except the newline, DEL, or C1 (U+0080 to
// U+009F).
bool IsControl(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return (lead < 0x20 && lead != '\n') || lead == 0x7f;
  return lead == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
}

}  // namespace

std::string LikelySpelling(std::string_view word, std::span<const std::string> candidates) {
  const size_t limit = std::max<size_t>(1, word.size() / 3);
  std::string best;
  size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view word, std::span<const std::string> candidates) {
  const std::string likely = LikelySpelling(word, candidates);
  return likely.empty() ? std::string() : fmt::format("; did you mean \"{}\"?", likely);
}

std::vector<std::string_view> SplitText(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != std::string_view::npos; begin = end + 1) {
    parts.push_back(text.substr(begin, end - begin));
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string JoinText(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

bool MatchesPattern(std::string_view text, std::string_view pattern) {
  size_t t = 0, p = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t]) && pattern[p] != '*') {
      ++t, ++p;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string Printable(std::string_view given) {
  const std::string written = WithWrittenPaths(given);
  std::string_view text = written;
  std::string out;
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    const std::string_view next = text.substr(0, std::max<size_t>(1, bytes));
    if (bytes > 0 && !IsControl(text)) {
      out += next;
    } else {
      for (const char c : next) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(next.size());
  }
  return out;
}

std::string HexOf(uint64_t value) { return fmt::format("{:016x}", value); }

std::string BytesText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < std::size(kUnits)) {
    value /= 1024.0;
    ++unit;
  }
  return value == static_cast<double>(static_cast<uint64_t>(value))
             ? fmt::format("{} {}", static_cast<uint64_t>(value), kUnits[unit])
             : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace dt
