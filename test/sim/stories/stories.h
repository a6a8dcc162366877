// Many stories with the same misfortunes, each of a seed of its own.
#pragma once

#include "test/sim/stories/story.h"
#include "test/support/sim_seeds.h"

namespace dt::sim {

inline constexpr NetworkFaults kBadNetwork = {
    .drop = 0.03, .duplicate = 0.03, .late = 0.01, .delay_max = milliseconds(20)};

// Under it, steps are so quick that misfortunes still befall the last ones.
inline constexpr NetworkFaults kFairNetwork = {
    .drop = 0.005, .duplicate = 0.01, .delay_max = milliseconds(20)};

// Expects each to end as promised. Returns what befell all of them together.
Story::Tally TellAll(Mode mode, const Misfortunes& misfortunes);

// A simulation in which little happens shows little. `shares`: of the number of stories. Nothing is
// expected of a single story that is repeated.
void ExpectAtLeast(uint32_t count, double share);
void ExpectAtMost(uint32_t count, double share);

}  // namespace dt::sim
