// Parses numbers, sizes and durations of a job file. Returns nothing if the text is not one.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/clock.h"

namespace dt {

std::optional<bool> ParseBool(std::string_view text);      // true, false
std::optional<uint64_t> ParseUint(std::string_view text);  // Decimal digits only.
std::optional<int64_t> ParseInt(std::string_view text);
std::optional<double> ParseFloat(std::string_view text);   // Finite.
std::optional<uint64_t> ParseSize(std::string_view text);  // "8GiB", "512 MiB", "4096"; KB is 1000.
// "3s", "500ms", "2m", "1h"; the unit is required.
std::optional<Duration> ParseDuration(std::string_view text);

}  // namespace dt
