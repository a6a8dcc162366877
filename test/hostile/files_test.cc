// Goal: whatever happened to a job's files, a program that reads them ends by itself: either with a
// sentence and an error code, or with the same result as from intact files. Method: a job is killed
// while it trains; each trial copies its files, damages one of them (seeded), and runs one command
// on the copy. DT_HOSTILE_SECONDS, DT_HOSTILE_SEED: see network_test.cc.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <signal.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/hostile/attack.h"
#include "test/hostile/hostile_options.h"
#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr Duration kEveryday = seconds(6);
constexpr uint64_t kStepsPerEpoch = 12, kCommands = 7;

class HostileFiles : public ::testing::Test {
 protected:
  // Leaves the files of a job that was killed between checkpoints, with push logs of the servers.
  void SetUp() override {
    job_ = WriteTinyJob(folder_, {.epochs = 100'000,
                                  .slices = 2,
                                  .servers = 2,
                                  .workers = 2,
                                  .more = "checkpoint: {every: 20, keep: 2, durability: log}"});
    Program program(folder_.path(), {"launch", job_});
    const auto saved = [&] { return CheckpointsOf(folder_, "tiny"); };
    ASSERT_TRUE(Eventually(seconds(60), [&] { return saved().size() >= 2; }));
    for (const pid_t pid : ProcessesWith(job_)) kill(pid, SIGKILL);
    program.Wait(seconds(20));
    ASSERT_TRUE(Eventually(seconds(20), [&] { return ProcessesWith(job_).empty(); }));
    checkpoint_ = saved().back();
    epochs_ = fmt::format("train.epochs={}", StepOf(checkpoint_) / kStepsPerEpoch + 2);
    fs::copy(folder_.path() + "/runs", folder_.path() + "/intact", fs::copy_options::recursive);
    for (const auto& file : fs::recursive_directory_iterator(folder_.path() + "/intact")) {
      if (file.is_regular_file() && file.file_size() > 0) {
        files_.push_back(fs::relative(file.path(), folder_.path() + "/intact").string());
      }
    }
    std::ranges::sort(files_);
  }

  void Restore() const {
    fs::remove_all(folder_.path() + "/runs");
    fs::copy(folder_.path() + "/intact", folder_.path() + "/runs", fs::copy_options::recursive);
    fs::remove(folder_.path() + "/r.json");
  }

  // Only cuts run.json or makes it unreadable. It names the address that commands connect to, which
  // must never become the address of something else.
  static std::string DamagedFile(const std::string& name, const std::string& bytes,
                                 Random& random) {
    if (name.ends_with("run.json")) {
      return random() % 2 == 0 ? bytes.substr(0, random() % bytes.size())
                               : std::string(random() % 100'000, '[') + bytes;
    }
    if (random() % 16 == 0) return RandomBytes(random, bytes.size());
    return Damaged(bytes, random);
  }

  // A command that reads the file, if there is one. Only `status` reads the two files that lead to
  // the scheduler. With any other file it would wait for a scheduler in vain, and test nothing.
  std::vector<std::string> CommandOn(const std::string& file, Random& random) const {
    const bool of_scheduler = file.ends_with("run.json") || file.ends_with(".key");
    if (of_scheduler && random() % 2 == 0) return {"status", job_};
    return CommandOf(random());
  }
  std::vector<std::string> CommandOf(uint64_t which) const {
    switch (which % kCommands) {
      case 0:
      case 1:
        return {"checkpoint", "verify", checkpoint_};
      case 2:
        return {"checkpoint", "list", job_};
      case 3:
      case 4:
        return {"eval", job_, "--checkpoint", checkpoint_, "--result", "r.json"};
      case 5:
        return {"train", job_, "--resume", "auto", "--set", epochs_, "--result", "r.json"};
      default:
        return {"launch", job_, "--resume", "auto", "--set", epochs_, "--result", "r.json"};
    }
  }
  // The part of a command's result that is equal in all runs.
  std::string ResultOf(const std::string& command) const {
    return command == "eval"
               ? fmt::format("{}", NumberAt(folder_, "r.json", "/metrics/valid/logloss"))
               : ChecksumOf(folder_, "r.json");
  }

  const TempFolder folder_;
  std::string job_, checkpoint_, epochs_;
  std::vector<std::string> files_;
};

TEST_F(HostileFiles, EndInASentenceOrInTheSameResult) {
  std::map<std::string, std::string> in_peace;
  for (uint64_t which = 0; which < kCommands; ++which) {
    const std::vector<std::string> command = CommandOf(which);
    Restore();
    const ProgramEnd end = RunProgram(folder_.path(), command);
    ASSERT_EQ(end.exit_code, 0) << command[0] << end.output;
    in_peace[command[0]] = ResultOf(command[0]);
  }
  ASSERT_EQ(in_peace["train"], in_peace["launch"]);
  const Duration time = std::max<Duration>(HostileTime(), kEveryday);
  const TimePoint until = SystemClock().Now() + time;
  uint64_t seed = HostileSeed(), tries = 0, refused = 0;
  for (; SystemClock().Now() < until && !HasFailure(); ++seed, ++tries) {
    Random random(seed);
    const std::string file = OneOf(files_, random);
    const std::vector<std::string> command = CommandOn(file, random);
    SCOPED_TRACE(
        fmt::format("DT_HOSTILE_SEED={}: {} {}, {} damaged", seed, command[0], command[1], file));
    Restore();
    folder_.Write("runs/" + file, DamagedFile(file, folder_.Read("intact/" + file), random));
    const ProgramEnd end = RunProgram(folder_.path(), command);
    EXPECT_FALSE(end.timed_out) << end.output;
    EXPECT_EQ(end.signal, 0) << end.output;
    for (const char* word : {"check failed", "terminate", "uncaught", "killed by signal"}) {
      EXPECT_EQ(end.output.find(word), std::string::npos) << end.output;
    }
    refused += end.exit_code != 0;
    if (end.exit_code != 0) {
      EXPECT_LE(end.exit_code, 3) << end.output;
      EXPECT_FALSE(end.output.empty());
    } else if (in_peace.contains(command[0])) {
      EXPECT_EQ(ResultOf(command[0]), in_peace[command[0]]) << end.output;
    }
  }
  std::printf("files, seeds %lu to %lu: %lu tries on %zu files, %lu refused with a sentence\n",
              HostileSeed(), seed - 1, tries, files_.size(), refused);
}

}  // namespace
}  // namespace dt::test
