#include "server/life/row_life.h"

#include <map>

#include <gtest/gtest.h>

namespace dt::server {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

// As many pushes of the key as it takes.
uint32_t PushesUntilAdmitted(RowLife& life, Key key) {
  uint32_t pushes = 1;
  for (; !life.Admit(key); ++pushes) life.Settle();
  return pushes;
}

TEST(RowLife, TheNthPushMakesTheRow) {
  for (const uint32_t n : {1u, 2u, 3u, 256u}) {
    RowLife life({.admission_pushes = n, .sketch_bytes = 1 << 16}, 7);
    EXPECT_EQ(PushesUntilAdmitted(life, 11), n);
    EXPECT_EQ(PushesUntilAdmitted(life, 12), n);
    EXPECT_EQ(life.refused(), 2 * (n - 1));
    EXPECT_TRUE(life.Admit(11)) << "a key that is known does not begin anew";
  }
}

TEST(RowLife, KeysOfOnePushDoNotSeeOneAnother) {
  RowLife life({.admission_pushes = 3, .sketch_bytes = 64}, 7);  // One line: many collide.
  for (int push = 0; push < 2; ++push) {
    for (Key key = 0; key < 1000; ++key) EXPECT_FALSE(life.Admit(key));
    life.Settle();
  }
  EXPECT_TRUE(life.Admit(999));
}

TEST(RowLife, StepsExpire) {
  RowLife life({.expiry_steps = 10}, 7);
  life.MoveClock(10);
  EXPECT_FALSE(life.IsGone(0)) << "steps 1 to 9 are nine";
  life.MoveClock(11);
  EXPECT_TRUE(life.IsGone(0)) << "steps 1 to 10 did not push it";
  EXPECT_FALSE(life.IsGone(1));
  EXPECT_FALSE(life.IsGone(~Step{0})) << "a row that is being made";
  life.Reset(5);
  EXPECT_FALSE(life.IsGone(0));
  life.Reset(100);
  EXPECT_EQ(life.expire_before(), 90u);
}

// A row goes after the time, and at most a 64th of it late; between boundaries nothing happens.
TEST(RowLife, HoursExpire) {
  RowLife life({.expiry_time = hours(64)}, 7);
  std::map<Step, Duration> pushed;
  Duration now{};
  Step before = 0;
  for (Step clock = 0; clock < 1000; ++clock) {
    pushed[clock] = now;  // The push of step `clock`.
    now += minutes(7 + clock % 20);
    life.PassTime(minutes(7 + clock % 20));
    EXPECT_EQ(life.expire_before(), before);
    life.MoveClock(clock + 1);
    before = life.expire_before();
    for (const auto& [step, at] : pushed) {
      const bool must_stay = now - at <= hours(64), must_be_gone = now - at > hours(66);
      EXPECT_FALSE(must_stay && life.IsGone(step)) << step << " at " << clock;
      EXPECT_FALSE(must_be_gone && !life.IsGone(step)) << step << " at " << clock;
    }
  }
  EXPECT_GT(before, 500u);
}

TEST(RowLife, FrozenRowsStay) {
  RowLife life({.expiry_steps = 1, .freeze = true}, 7);
  life.MoveClock(1000);
  EXPECT_FALSE(life.IsGone(0));
}

TEST(RowLife, StateGoesOn) {
  const LifeSpec spec{.admission_pushes = 4, .sketch_bytes = 1 << 12, .expiry_time = hours(1)};
  RowLife life(spec, 7), later(spec, 7);
  for (Key key = 0; key < 100; ++key) life.Admit(key), life.Admit(key);
  life.Settle();
  for (Step clock = 1; clock <= 90; ++clock) {
    life.PassTime(minutes(1));
    life.MoveClock(clock);
  }
  later.Reset(90);
  const auto restored = later.Restore(life.State());
  ASSERT_TRUE(restored.ok() && *restored) << restored.status();
  EXPECT_EQ(later.State(), life.State());
  EXPECT_EQ(later.expire_before(), life.expire_before());
  EXPECT_GT(later.expire_before(), 20u);
  for (RowLife* each : {&life, &later}) {
    each->PassTime(minutes(10));
    each->MoveClock(91);
  }
  EXPECT_EQ(later.expire_before(), life.expire_before());
  EXPECT_EQ(PushesUntilAdmitted(later, 5), PushesUntilAdmitted(life, 5));
}

TEST(RowLife, StateOfOtherRules) {
  const LifeSpec spec{.admission_pushes = 4, .sketch_bytes = 1 << 12, .expiry_time = hours(1)};
  const std::string state = RowLife(spec, 7).State();
  LifeSpec other = spec;
  other.sketch_bytes = 1 << 13;
  EXPECT_FALSE(RowLife(other, 7).Restore(state).value()) << "its counts begin anew";
  EXPECT_TRUE(RowLife({}, 7).Restore(state).value()) << "nothing of it is needed";
  EXPECT_TRUE(RowLife({}, 7).State().empty());
  RowLife life(spec, 7);
  for (size_t bytes = 0; bytes < state.size(); bytes += 7) {
    EXPECT_FALSE(life.Restore(std::string_view(state).substr(0, bytes)).ok()) << bytes;
  }
  for (size_t at = 0; at < 40; ++at) {
    std::string wrong = state;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x80);
    life.Restore(wrong).IgnoreError();  // Whatever the bytes: no harm.
  }
}

}  // namespace
}  // namespace dt::server
