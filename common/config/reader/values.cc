#include "common/config/reader/values.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace dt {
namespace {

template <class T>
std::optional<T> ParseWhole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "8GiB" → (8, "GiB").
std::optional<std::pair<double, std::string_view>> NumberAndUnit(std::string_view text) {
  const size_t digits = text.find_first_not_of("0123456789.");
  const auto number = ParseFloat(text.substr(0, digits));
  if (!number.has_value()) return std::nullopt;
  std::string_view unit = digits == std::string_view::npos ? "" : text.substr(digits);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  return std::pair(*number, unit);
}

}  // namespace

std::optional<bool> ParseBool(std::string_view text) {
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  return std::nullopt;
}

std::optional<uint64_t> ParseUint(std::string_view text) { return ParseWhole<uint64_t>(text); }
std::optional<int64_t> ParseInt(std::string_view text) { return ParseWhole<int64_t>(text); }

std::optional<double> ParseFloat(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto value = ParseWhole<double>(text);
  if (!value.has_value() || !std::isfinite(*value)) return std::nullopt;
  return value;
}

std::optional<uint64_t> ParseSize(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 10> kUnits = {{{"", 1.0},
                                                                           {"B", 1.0},
                                                                           {"KiB", 0x1p10},
                                                                           {"MiB", 0x1p20},
                                                                           {"GiB", 0x1p30},
                                                                           {"TiB", 0x1p40},
                                                                           {"KB", 1e3},
                                                                           {"MB", 1e6},
                                                                           {"GB", 1e9},
                                                                           {"TB", 1e12}}};
  if (const auto whole = ParseUint(text); whole.has_value()) return whole;
  const auto parts = NumberAndUnit(text);
  if (!parts.has_value()) return std::nullopt;
  for (const auto& [unit, bytes] : kUnits) {
    if (unit != parts->second) continue;
    const double value = parts->first * bytes;
    return value < 0x1p63 ? std::optional(static_cast<uint64_t>(value)) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<Duration> ParseDuration(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits = {
      {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 6e10}, {"min", 6e10}, {"h", 3.6e12}}};
  const auto parts = NumberAndUnit(text);
  if (!parts.has_value()) return std::nullopt;
  for (const auto& [unit, nanoseconds] : kUnits) {
    if (unit != parts->second) continue;
    const double value = parts->first * nanoseconds;
    return value < 0x1p62 ? std::optional(Duration(std::llround(value))) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace dt
