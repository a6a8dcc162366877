// Goal: a peer is silent when it has owed an answer for the limit while somebody looked for it, and
// not before. Method: calls at times that the test chooses.
#include "common/cluster/answer_watch.h"

#include <gtest/gtest.h>

namespace dt {
namespace {

using Ids = std::vector<ProcessId>;
constexpr ProcessId kFirst(1), kSecond(2);

class AnswerWatchTest : public ::testing::Test {
 protected:
  // Looks for answers every 100 ms.
  void LookFor(Duration time) {
    for (Duration passed{}; passed < time; passed += milliseconds(100)) {
      now_ += milliseconds(100);
      watch_.Pass(now_);
    }
  }

  TimePoint now_ = TimePoint() + seconds(100);
  AnswerWatch watch_{seconds(3)};
};

TEST_F(AnswerWatchTest, WhoIsNotAskedOwesNothing) {
  LookFor(seconds(10));
  EXPECT_EQ(watch_.Silent(), Ids{});
}

TEST_F(AnswerWatchTest, ThreeSecondsWithoutAnAnswerAreSilence) {
  LookFor(seconds(1));
  watch_.OnAsked(kFirst, "a");
  LookFor(milliseconds(2900));
  watch_.OnAsked(kFirst, "a");
  EXPECT_EQ(watch_.Silent(), Ids{});
  LookFor(milliseconds(100));
  EXPECT_EQ(watch_.Silent(), Ids{kFirst});
  LookFor(seconds(5));
  EXPECT_EQ(watch_.Silent(), Ids{kFirst}) << "as long as it lasts";
}

TEST_F(AnswerWatchTest, AnyAnswerEndsIt) {
  watch_.OnAsked(kFirst, "a");
  LookFor(seconds(4));
  watch_.OnAnswer("a");
  EXPECT_EQ(watch_.Silent(), Ids{});
  EXPECT_TRUE(watch_.empty());
  LookFor(seconds(4));
  EXPECT_EQ(watch_.Silent(), Ids{}) << "and nothing has been asked since";
}

TEST_F(AnswerWatchTest, OneOfSeveralEndpointsIsEnough) {
  watch_.OnAsked(kSecond, "b");
  watch_.OnAsked(kFirst, "a0");
  watch_.OnAsked(kFirst, "a1");
  LookFor(seconds(4));
  watch_.OnAnswer("a0");
  EXPECT_EQ(watch_.Silent(), (Ids{kFirst, kSecond}));
  watch_.KeepOnly({"a0", "b"});
  EXPECT_EQ(watch_.Silent(), Ids{kSecond});
}

// The answer may have come meanwhile, and must be looked for first.
TEST_F(AnswerWatchTest, TimeInWhichNobodyLookedCountsLittle) {
  watch_.OnAsked(kFirst, "a");
  LookFor(seconds(1));
  now_ += seconds(60);
  watch_.Pass(now_);
  EXPECT_EQ(watch_.Silent(), Ids{});
  LookFor(seconds(2));
  EXPECT_EQ(watch_.Silent(), Ids{kFirst});
}

}  // namespace
}  // namespace dt
