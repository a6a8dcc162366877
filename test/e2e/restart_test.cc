// Goal: whatever instant the scheduler is killed at, another one goes on with the run, and the job
// ends with the bits of an undisturbed one. Method: real processes, killed by SIGKILL; `launch`
// starts another scheduler.
#include <filesystem>
#include <signal.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/launched_job.h"

namespace dt::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class Restart : public LaunchedJob {
 protected:
  bool Eventually(const std::function<bool()>& done) { return test::Eventually(seconds(30), done); }
  // Kills it, and waits until another one runs.
  void KillScheduler() {
    const std::vector<pid_t> killed = ProcessesWith(mark_, "scheduler");
    ASSERT_EQ(killed.size(), 1u) << launch_->Output();
    kill(killed[0], SIGKILL);
    ASSERT_TRUE(Eventually([&] {
      const std::vector<pid_t> now = ProcessesWith(mark_, "scheduler");
      return !now.empty() && now != killed;
    })) << launch_->Output();
  }
};

constexpr const char* kEvery100 = "checkpoint: {every: 100}";

TEST_F(Restart, ASchedulerKilledWhileItTrainsIsFollowedByAnother) {
  WriteJob({.epochs = 30, .slices = 2, .servers = 2, .workers = 2, .more = kEvery100});
  Launch("scheduler-dies");
  for (const uint64_t step : {100, 200}) {
    ASSERT_TRUE(Eventually([&] { return HasCheckpointOf(step); })) << launch_->Output();
    KillScheduler();
  }
  ExpectEnd();
  EXPECT_THAT(folder_.Read("launched.json"), HasSubstr("scheduler_restarted"));
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed());
}

// At instants that the processes do not choose: among them while they join, read and start.
TEST_F(Restart, AtAnyInstant) {
  WriteJob({.epochs = 8, .servers = 2, .workers = 2, .more = kEvery100});
  const std::string undisturbed = Undisturbed();
  for (const int ms : {40, 120, 250, 450, 700, 1100}) {
    Launch(fmt::format("scheduler-dies-after-{}", ms));
    ASSERT_TRUE(Eventually([&] { return !ProcessesWith(mark_, "worker").empty(); }));
    test::Eventually(milliseconds(ms), [] { return false; });
    const std::vector<pid_t> found = ProcessesWith(mark_, "scheduler");
    if (!found.empty()) kill(found[0], SIGKILL);
    ExpectEnd();
    EXPECT_EQ(ChecksumOf(folder_, "launched.json"), undisturbed) << ms;
    if (HasFailure()) return;
  }
}

TEST_F(Restart, AServerThatIsKilledMeanwhileComesBackToo) {
  WriteJob({.epochs = 30,
            .slices = 2,
            .servers = 2,
            .workers = 2,
            .more = "checkpoint: {every: 100, durability: log}"});
  Launch("both-die", {"--set", "cluster.lease=20s"});
  ASSERT_TRUE(Eventually([&] { return HasCheckpointOf(100); })) << launch_->Output();
  const std::vector<pid_t> servers = ProcessesWith(mark_, "server");
  ASSERT_EQ(servers.size(), 2u);
  kill(servers[0], SIGKILL);
  KillScheduler();
  ExpectEnd();
  EXPECT_THAT(folder_.Read("launched.json"), HasSubstr("recovered"));
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed());
}

// Nobody waits for a run whose processes are all gone.
TEST_F(Restart, AKilledJobIsStartedAnewWhenNobodyIsLeft) {
  WriteJob({.epochs = 100000, .servers = 1, .workers = 1, .more = kEvery100});
  Launch("all-die", {"--set", "cluster.restarts=0"});
  ASSERT_TRUE(Eventually([&] { return HasCheckpointOf(100); })) << launch_->Output();
  for (const pid_t pid : ProcessesWith(mark_)) kill(pid, SIGKILL);
  ASSERT_TRUE(Eventually([&] { return ProcessesWith(mark_).empty(); }));
  const ProgramEnd next = RunProgram(folder_.path(), {"launch", job_, "--set", mark_, "--set",
                                                      "train.epochs=1", "--result", "next.json"});
  EXPECT_EQ(next.exit_code, 0) << next.output;
  EXPECT_EQ(folder_.Read("next.json").find("scheduler_restarted"), std::string::npos);
}

}  // namespace
}  // namespace dt::test
