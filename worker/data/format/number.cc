#include "worker/data/format/number.h"

#include <cmath>

#include <fmt/format.h>

namespace dt::worker {

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool ParseU64(std::string_view text, uint64_t& out) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && stop == end;
}

bool ParseI64(std::string_view text, int64_t& out) {
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && stop == end;
}

namespace {

bool ParseFloatFully(std::string_view text, float& out) {
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  if (stop != end || text.empty() || error == std::errc::invalid_argument) return false;
  if (error == std::errc()) return std::isfinite(out);
  // The value is too large or too near to zero; only in the second case it counts as a number.
  double value = 0;
  const bool known = std::from_chars(text.data(), end, value).ec == std::errc();
  const size_t exponent = text.find_first_of("eE");
  const bool tiny = exponent != std::string_view::npos && text.substr(exponent + 1, 1) == "-";
  out = 0;
  return known ? std::abs(value) < 1 : tiny;
}

}  // namespace

bool ParseFloat(std::string_view text, float& out) {
  // Most cells are short integers.
  const bool negative = !text.empty() && text.front() == '-';
  const std::string_view digits = text.substr(negative ? 1 : 0);
  if (digits.empty() || digits.size() > 7) return ParseFloatFully(text, out);
  int value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return ParseFloatFully(text, out);
    value = value * 10 + (c - '0');
  }
  out = static_cast<float>(negative ? -value : value);
  return true;
}

float SignedLog(float x) {
  const double magnitude = std::log1p(std::abs(static_cast<double>(x)));
  return static_cast<float>(std::copysign(magnitude, static_cast<double>(x)));
}

std::string Quoted(std::string_view text) {
  constexpr size_t kShown = 40;
  if (text.empty()) return "an empty cell";
  std::string out = "\"";
  for (const char c : text.substr(0, kShown)) {
    if (c >= ' ' && c < '\x7f') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out + (text.size() > kShown ? "…\"" : "\"");
}

std::string CellError(std::string_view column, std::string_view found, std::string_view expected) {
  return fmt::format("column \"{}\": {} found, {} expected", column, found, expected);
}

}  // namespace dt::worker
