#include "server/life/life_state.h"

#include <gtest/gtest.h>

namespace dt::server {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

constexpr LifeSpec kSpec{.admission_pushes = 4, .sketch_bytes = 1 << 12, .expiry_time = hours(1)};

// Admission and expiry of one table, as in EmbeddingTable.
struct Life {
  explicit Life(const LifeSpec& spec) : admission(spec, 7), expiry(spec) {}
  std::string State() const { return EncodeLifeState(admission, expiry); }
  Result<bool> Restore(std::string_view state) {
    return RestoreLifeState(state, admission, expiry);
  }
  void RunUntil(Step clock, Duration elapsed) {
    expiry.PassTime(elapsed);
    expiry.MoveClock(clock);
  }

  RowAdmission admission;
  RowExpiry expiry;
};

TEST(LifeState, GoesOn) {
  Life life(kSpec), later(kSpec);
  for (Key key = 0; key < 100; ++key) life.admission.Admit(key), life.admission.Admit(key);
  life.admission.Settle();
  for (Step clock = 1; clock <= 90; ++clock) life.RunUntil(clock, minutes(1));
  later.expiry.Reset(90);
  const auto restored = later.Restore(life.State());
  ASSERT_TRUE(restored.ok() && *restored) << restored.status();
  EXPECT_EQ(later.State(), life.State());
  EXPECT_EQ(later.expiry.expire_before(), life.expiry.expire_before());
  EXPECT_GT(later.expiry.expire_before(), 20u);
  for (Life* each : {&life, &later}) each->RunUntil(91, minutes(10));
  EXPECT_EQ(later.expiry.expire_before(), life.expiry.expire_before());
  for (Key key = 0; key < 200; ++key) {
    EXPECT_EQ(later.admission.Admit(key), life.admission.Admit(key)) << key;
  }
}

TEST(LifeState, OfOtherRules) {
  const std::string state = Life(kSpec).State();
  LifeSpec other = kSpec;
  other.sketch_bytes = 1 << 13;
  EXPECT_FALSE(Life(other).Restore(state).value()) << "its counts begin anew";
  EXPECT_TRUE(Life({}).Restore(state).value()) << "nothing of it is needed";
  EXPECT_TRUE(Life({}).State().empty());
}

TEST(LifeState, ForeignBytesAreRefusedOrHarmless) {
  Life life(kSpec);
  const std::string state = life.State();
  for (size_t bytes = 0; bytes < state.size(); bytes += 7) {
    EXPECT_FALSE(life.Restore(std::string_view(state).substr(0, bytes)).ok()) << bytes;
  }
  for (size_t at = 0; at < 40; ++at) {
    std::string wrong = state;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x80);
    life.Restore(wrong).IgnoreError();  // No bytes may do harm.
  }
}

}  // namespace
}  // namespace dt::server
