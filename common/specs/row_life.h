// When a key gets a row, when it loses it, and what a key without a row reads as.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/clock.h"

namespace dt {

struct RowLifeConfig {
  uint32_t admission_pushes = 1;     // A key gets a row at this push.
  uint64_t sketch_bytes = 16 << 20;  // Size of the count-min sketch of a whole table.
  uint64_t expiry_steps = 0;         // 0: rows never expire. At most one of steps and time is set.
  Duration expiry_time{};            // Zero: rows never expire.
  bool freeze = false;               // No row is created or changed.
};

// What a key without a row reads as in an evaluation.
enum class EvalDefault { kInitial, kZeros };
inline constexpr std::string_view kEvalDefaultNames = "initial|zeros";
std::string_view NameOf(EvalDefault value);

}  // namespace dt
