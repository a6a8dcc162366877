// When a key gets a row, when it loses it, and how it reads without one.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/clock.h"

namespace dt {

struct RowLifeConfig {
  uint32_t admission_pushes = 1;     // The push that makes a row.
  uint64_t sketch_bytes = 16 << 20;  // Size of the count-min sketch of the whole table.
  uint64_t expiry_steps = 0;         // 0: never. At most one of steps and time is set.
  Duration expiry_time{};            // Zero: never.
  bool freeze = false;               // No row is made or changed.
};

// How a key without a row reads in an evaluation.
enum class EvalDefault { kInitial, kZeros };
inline constexpr std::string_view kEvalDefaultNames = "initial|zeros";
std::string_view NameOf(EvalDefault value);

}  // namespace dt
