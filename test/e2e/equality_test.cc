// Goal: the parameters depend neither on the number of processes nor on a kill and resume. Method:
// the real program on a small job; the checksums of keys, values and optimizer state in the result
// files must be equal strings.
#include <signal.h>

#include <gtest/gtest.h>

#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using std::chrono::seconds;

std::vector<std::string> With(std::vector<std::string> arguments, int servers, int workers) {
  arguments.push_back("--set");
  arguments.push_back("cluster.servers=" + std::to_string(servers));
  arguments.push_back("--set");
  arguments.push_back("cluster.workers=" + std::to_string(workers));
  return arguments;
}

// Returns the checksum after a run. Each name has a folder of its own for checkpoints and state.
std::string ChecksumAfter(const TempFolder& folder, const std::string& name,
                          std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--set", "job=" + name, "--result", name + ".json"});
  const ProgramEnd end = RunProgram(folder.path(), arguments, seconds(60));
  EXPECT_EQ(end.exit_code, 0) << name << ": " << end.output;
  return ChecksumOf(folder, name + ".json");
}

TEST(Equality, OneSliceGivesTheSameBitsOnAnyNumberOfServers) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.slices = 1});
  const std::string one = ChecksumAfter(folder, "one", {"train", job});
  ASSERT_NE(one, "");
  EXPECT_EQ(ChecksumAfter(folder, "w1s1", With({"launch", job}, 1, 1)), one);
  EXPECT_EQ(ChecksumAfter(folder, "w1s3", With({"launch", job}, 3, 1)), one);
}

TEST(Equality, TwoSlicesGiveTheSameBitsOnAnyNumberOfWorkersAndServers) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.slices = 2});
  const std::string one = ChecksumAfter(folder, "one", {"train", job});
  ASSERT_NE(one, "");
  EXPECT_EQ(ChecksumAfter(folder, "w2s1", With({"launch", job}, 1, 2)), one);
  EXPECT_EQ(ChecksumAfter(folder, "w2s3", With({"launch", job}, 3, 2)), one);
}

TEST(Equality, HoldsInEveryFormatOfRows) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.slices = 2});
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(),
                     {"--set", "model.tables.deep.wire=int8", "--set",
                      "model.tables.wide.wire=fp16", "--set", "model.tables.deep.dtype=bf16"});
    return arguments;
  };
  const std::string one = ChecksumAfter(folder, "one", with({"train", job}));
  ASSERT_NE(one, "");
  EXPECT_EQ(ChecksumAfter(folder, "w2s3", with(With({"launch", job}, 3, 2))), one);
  EXPECT_NE(ChecksumAfter(folder, "plain", {"train", job}), one);
}

TEST(Equality, RowsThatLieOnDiskGiveTheSameBits) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.slices = 2});
  const auto with = [&](std::vector<std::string> arguments, const std::string& memory) {
    arguments.insert(arguments.end(),
                     {"--set", "model.tables.deep.dim=128", "--set", "checkpoint.every=5", "--set",
                      "cluster.server.memory=" + memory});
    return arguments;
  };
  const std::string one = ChecksumAfter(folder, "one", with({"train", job}, "1GiB"));
  ASSERT_NE(one, "");
  EXPECT_EQ(ChecksumAfter(folder, "small", with({"train", job}, "64KiB")), one);
  EXPECT_EQ(ChecksumAfter(folder, "w2s2", with(With({"launch", job}, 2, 2), "64KiB")), one);
}

TEST(Equality, RowsThatFollowADenseOptimizerGiveTheSameBits) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.slices = 2});
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(),
                     {"--set", "optimizer.scope=dense", "--set", "model.tables.deep.dtype=bf16",
                      "--set", "model.tables.deep.dim=128", "--set", "checkpoint.every=5"});
    return arguments;
  };
  const std::string one = ChecksumAfter(folder, "one", with({"train", job}));
  ASSERT_NE(one, "");
  std::vector<std::string> small = with(With({"launch", job}, 3, 2));
  small.insert(small.end(), {"--set", "cluster.server.memory=64KiB"});
  EXPECT_EQ(ChecksumAfter(folder, "w2s3", small), one);
}

TEST(Equality, AnotherSeedGivesOtherBits) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {});
  EXPECT_NE(ChecksumAfter(folder, "a", {"train", job}),
            ChecksumAfter(folder, "b", {"train", job, "--set", "seed=6"}));
}

TEST(Equality, KilledAfterACheckpointAndResumedEqualsUninterrupted) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.rows = 6000,
                                                .epochs = 30,
                                                .slices = 2,
                                                .servers = 2,
                                                .workers = 2,
                                                .more = "checkpoint: {every: 20, keep: 2}"});
  const std::string whole = ChecksumAfter(folder, "whole", {"launch", job});
  ASSERT_NE(whole, "");
  const std::string name = JobNameOfOurs("broken");
  const std::string mark = "job=" + name;
  {
    Program killed(folder.path(), {"launch", job, "--set", mark});
    ASSERT_TRUE(Eventually(seconds(30), [&] {
      return RunProgram(folder.path(), {"checkpoint", "list", job, "--set", mark})
                 .output.find("step-") != std::string::npos;
    })) << killed.Output();
    killed.Signal(SIGKILL);
    killed.Wait(seconds(5));
  }
  ASSERT_TRUE(Eventually(seconds(15), [&] { return ProcessesWith(mark).empty(); }));
  EXPECT_EQ(ChecksumAfter(folder, name, {"launch", job, "--resume", "auto"}), whole);
}

// Several worker processes hold each table whole; a job that was stopped after one epoch is resumed
// by one process.
TEST(Equality, TablesOnWorkersGiveTheSameBitsAlsoWhenOneGoesOn) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 3, .slices = 2});
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--set", "model.tables.deep.device=cpu", "--set",
                                       "model.tables.wide.device=gpu"});
    return arguments;
  };
  const std::string servers = ChecksumAfter(folder, "servers", {"train", job});
  ASSERT_NE(servers, "");
  EXPECT_EQ(ChecksumAfter(folder, "w2s2", with(With({"launch", job}, 2, 2))), servers);
  std::vector<std::string> part = with(With({"launch", job}, 1, 2));
  part.insert(part.end(), {"--set", "train.epochs=1"});
  EXPECT_NE(ChecksumAfter(folder, "part", part), servers);
  EXPECT_EQ(ChecksumAfter(folder, "part", with({"train", job, "--resume", "auto"})), servers);
}

}  // namespace
}  // namespace dt::test
