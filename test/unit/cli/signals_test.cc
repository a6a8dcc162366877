// Goal: the first stop signal is a request; what comes right behind it is the same one, and a later
// one ends the process at once. Method: real signals to a child, since they are a process's.
#include "cli/process/signals.h"

#include <csignal>
#include <unistd.h>

#include <gtest/gtest.h>

#include "common/base/pause.h"

namespace dt::cli {
namespace {

constexpr int kStillThere = 7;

// In the child: a signal that is heeded, another one `pause` later, and time to be ended by it.
[[noreturn]] void TakeTwo(Duration pause) {
  StopSignals signals;
  signals.Heed();
  kill(getpid(), SIGTERM);
  while (signals.received() == 0) Pause(milliseconds(1));
  Pause(pause);
  kill(getpid(), SIGTERM);
  Pause(milliseconds(250));
  _exit(kStillThere);
}

// The kernel tells a child of its parent's death once for each thread that the parent had: a role
// that took the second for impatience ended without a word, and the job waited for its lease.
TEST(StopSignals, TwoAtOnceAreOneRequest) {
  EXPECT_EXIT(TakeTwo(milliseconds(1)), testing::ExitedWithCode(kStillThere), "");
}

TEST(StopSignals, ALaterOneEndsTheProcess) {
  EXPECT_EXIT(TakeTwo(milliseconds(600)), testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST(StopSignals, OneThatNobodyHeedsEndsTheProcess) {
  const auto take = [] {
    StopSignals signals;
    kill(getpid(), SIGTERM);
    Pause(seconds(5));
    _exit(kStillThere);
  };
  EXPECT_EXIT(take(), testing::ExitedWithCode(128 + SIGTERM), "");
}

}  // namespace
}  // namespace dt::cli
