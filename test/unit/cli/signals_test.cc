// Goal: the first stop signal is a request; a signal immediately after it is part of the same
// request, and a later one ends the process at once. Method: real signals to a child process,
// because signal handlers belong to a process.
#include "cli/process/signals.h"

#include <csignal>
#include <unistd.h>

#include <gtest/gtest.h>

#include "common/base/pause.h"

namespace dt::cli {
namespace {

constexpr int kStillThere = 7;

// Runs in the child: handles a signal, gets another one `pause` later, and waits to be ended by it.
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

// The kernel signals a parent's death to a child once for each thread that the parent had. If the
// second signal ended a role at once, it would not report its end, and the job would wait for its
// lease.
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
