// Goal: whatever instant a job's processes are killed at while it writes checkpoints, what is left
// loads right: every complete checkpoint is sound, and the job that goes on from the newest ends
// with the bits of an undisturbed one, on other numbers of servers, workers and shards, too.
// Method: real processes, killed together by SIGKILL at random instants.
#include <filesystem>
#include <random>
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

class KilledSaving : public LaunchedJob, public ::testing::WithParamInterface<int> {
 protected:
  void LaunchAgain(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"launch",
                                          job_,
                                          "--set",
                                          mark_,
                                          "--resume",
                                          "auto",
                                          "--result",
                                          "launched.json",
                                          "--no-progress",
                                          "--set",
                                          "cluster.restarts=0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    launch_ = std::make_unique<Program>(folder_.path(), arguments);
  }
  void KillAll() {
    for (const pid_t pid : ProcessesWith(mark_))
      kill(pid, SIGSTOP);  // So that none ends by itself.
    for (const pid_t pid : ProcessesWith(mark_)) kill(pid, SIGKILL);
    launch_->Wait(seconds(10));
    ASSERT_TRUE(Eventually(seconds(10), [&] { return ProcessesWith(mark_).empty(); }));
  }
};

TEST_P(KilledSaving, LeavesNoCheckpointThatLoadsWrong) {
  // A checkpoint every few milliseconds: it is nearly always writing one.
  WriteJob({.epochs = 12u * static_cast<uint32_t>(GetParam()),
            .slices = 2,
            .servers = 2,
            .workers = 2,
            .more = "checkpoint: {every: 5, keep: 3}"});
  Launch("killed-saving", {"--set", "cluster.restarts=0"});
  std::mt19937 random(11);
  size_t unfinished = 0;
  for (int time = 0; time < GetParam(); ++time) {
    const size_t before =
        CheckpointsOf(folder_, name_).empty() ? 0 : StepOf(CheckpointsOf(folder_, name_).back());
    ASSERT_TRUE(Reaches(before + 5)) << launch_->Output();
    Eventually(milliseconds(random() % 100), [] { return false; });
    ASSERT_FALSE(launch_->HasEnded()) << "the job is too short: " << launch_->Output();
    KillAll();
    const std::string dir = "runs/" + name_ + "/checkpoints";
    for (const std::string& folder : CheckpointsOf(folder_, name_)) {
      const ProgramEnd verified = RunProgram(folder_.path(), {"checkpoint", "verify", folder});
      ASSERT_EQ(verified.exit_code, 0) << verified.output;
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() + "/" + dir)) {
      unfinished += entry.path().filename().string().starts_with(".writing");
    }
    LaunchAgain();
  }
  KillAll();
  LaunchAgain({"--set", "cluster.servers=3", "--set", "cluster.workers=1", "--set",
               "cluster.shards=32", "--set", "checkpoint.every=end"});
  ExpectEnd(seconds(600));  // Most epochs are left, if a slow machine begins slowly.
  std::printf("%zu checkpoints were not complete\n", unfinished);
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed({"--set", "checkpoint.every=end"}));
}

INSTANTIATE_TEST_SUITE_P(Five, KilledSaving, ::testing::Values(5));
INSTANTIATE_TEST_SUITE_P(Hundred, KilledSaving, ::testing::Values(100));

// Two copies of each shard; the checkpoint has each row once.
TEST_F(LaunchedJob, ACheckpointLoadsOnOtherServersWorkersAndShards) {
  WriteJob(
      {.epochs = 6, .slices = 4, .servers = 3, .workers = 2, .more = "checkpoint: {every: 20}"});
  const std::string undisturbed = Undisturbed();
  Launch("reshaped", {"--set", "train.max_steps=40", "--set", "cluster.replicas=2"});
  ExpectEnd();
  for (const auto& [servers, workers, replicas, shards] :
       {std::tuple(5, 1, 1, 64), std::tuple(1, 4, 1, 1), std::tuple(2, 2, 2, 16)}) {
    SCOPED_TRACE(servers);
    const ProgramEnd end = RunProgram(
        folder_.path(),
        {"launch", job_, "--set", mark_, "--set", fmt::format("cluster.servers={}", servers),
         "--set", fmt::format("cluster.workers={}", workers), "--set",
         fmt::format("cluster.replicas={}", replicas), "--set",
         fmt::format("cluster.shards={}", shards), "--resume", CheckpointsOf(folder_, name_).back(),
         "--result", "reshaped.json"});
    EXPECT_EQ(end.exit_code, 0) << end.output;
    EXPECT_EQ(ChecksumOf(folder_, "reshaped.json"), undisturbed);
  }
}

}  // namespace
}  // namespace dt::test
