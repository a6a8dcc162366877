// Times in cells, and their parts in UTC. Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/ids.h"

namespace dt::worker {

inline constexpr std::string_view kTimeExpected =
    "a time of the years 0 to 9999, as seconds since 1970 or such as 2024-05-01 12:34:56,";

// From the start of 1970 in UTC, before it negative. Takes whole seconds, or ISO 8601: a date, or a
// date, 'T' or a blank, hours and minutes, then perhaps seconds, a fraction of them, which is
// dropped, and 'Z' or a distance from UTC such as +02:00; without one, the time is in UTC.
bool ParseTime(std::string_view text, int64_t& seconds);

// Whether a time is in the years 0 to 9999, as those of which parts can be taken are.
bool IsTime(int64_t seconds);

enum class TimePart : uint8_t {
  kHour,     // 0 to 23
  kWeekday,  // Monday is 0.
  kDay,      // Of the month, from 1.
  kMonth,    // From 1.
};
// REQUIRES: IsTime(seconds).
Key PartOf(TimePart part, int64_t seconds);

}  // namespace dt::worker
