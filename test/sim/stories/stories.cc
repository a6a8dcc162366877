#include "test/sim/stories/stories.h"

#include <gtest/gtest.h>

namespace dt::sim {
namespace {

constexpr uint64_t kSeeds = 14;  // So many stories of each kind are told.

double ShareOf(double share) { return share * static_cast<double>(SimSeeds(kSeeds).size()); }

}  // namespace

Story::Tally TellAll(Mode mode, const Misfortunes& misfortunes) {
  Story::Tally all;
  for (const uint64_t seed : SimSeeds(kSeeds)) {
    SCOPED_TRACE(Repeat(seed));
    Story story(seed, JobOf(mode));
    ExpectAsPromised(mode, misfortunes, story);
    all += story.tally();
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "what befell it:\n" << story.text();
      break;
    }
  }
  return all;
}

void ExpectAtLeast(uint32_t count, double share) {
  if (RepeatsOneSeed()) return;
  EXPECT_GE(count, ShareOf(share) - 1);
}

void ExpectAtMost(uint32_t count, double share) {
  if (RepeatsOneSeed()) return;
  EXPECT_LE(count, ShareOf(share) + 1);
}

}  // namespace dt::sim
