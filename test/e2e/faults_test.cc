// Goal: whatever role is lost, the job ends within 15 s with a sentence that names it, a result
// file, and no process left. Method: the real processes, killed with SIGKILL while they train.
#include <signal.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using std::chrono::seconds;

class Faults : public ::testing::Test {
 protected:
  // Starts a job that would train for minutes, and waits until it trains. Its processes carry
  // `mark`.
  void StartTraining(const std::string& mark) {
    mark_ = "job=" + JobNameOfOurs(mark);
    const std::string job = WriteTinyJob(folder_, {.epochs = 100000,
                                                   .slices = 2,
                                                   .servers = 2,
                                                   .workers = 2,
                                                   .more = "checkpoint: {every: 50, keep: 2}"});
    job_ = job;
    program_ = std::make_unique<Program>(
        folder_.path(),
        std::vector<std::string>{"launch", job, "--set", mark_, "--result", "r.json"});
    ASSERT_TRUE(Eventually(seconds(30), [&] {
      return RunProgram(folder_.path(), {"checkpoint", "list", job, "--set", mark_})
                 .output.find("step-") != std::string::npos;
    })) << program_->Output();
  }

  // The pid of one child whose command line begins with this role.
  pid_t PidOf(const std::string& role) const {
    for (const pid_t pid : ProcessesWith(mark_)) {
      const std::string words = CommandLineOf(pid);
      if (words.find(std::string("\0", 1) + role + std::string("\0", 1)) != std::string::npos)
        return pid;
    }
    return -1;
  }

  static std::string CommandLineOf(pid_t pid) {
    std::string text;
    if (std::FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/cmdline").c_str(), "rb")) {
      char buffer[4096];
      text.assign(buffer, std::fread(buffer, 1, sizeof(buffer), file));
      std::fclose(file);
    }
    return text;
  }

  void KillAndExpectSentence(const std::string& role) {
    const pid_t pid = PidOf(role);
    ASSERT_GT(pid, 0);
    kill(pid, SIGKILL);
    const ProgramEnd end = program_->Wait(seconds(15));
    EXPECT_FALSE(end.timed_out) << end.output;
    EXPECT_EQ(end.exit_code, 1) << end.output;
    EXPECT_NE(end.output.find(role), std::string::npos) << end.output;
    EXPECT_NE(end.output.find(std::to_string(pid)), std::string::npos) << end.output;
    EXPECT_TRUE(ProcessesWith(mark_).empty());
    EXPECT_EQ(TextAt(folder_, "r.json", "/status"), "failed");
    const std::string what = TextAt(folder_, "r.json", "/error/what");
    EXPECT_NE(what.find(role), std::string::npos) << what;
    EXPECT_NE(what.find(fmt::format("pid {}", pid)), std::string::npos) << what;
  }

  TempFolder folder_;
  std::string mark_, job_;
  std::unique_ptr<Program> program_;
};

TEST_F(Faults, AKilledWorkerEndsTheJobAndIsNamed) {
  StartTraining("kill-worker");
  KillAndExpectSentence("worker");
}

TEST_F(Faults, AKilledServerEndsTheJobAndIsNamed) {
  StartTraining("kill-server");
  KillAndExpectSentence("server");
}

TEST_F(Faults, AKilledSchedulerEndsTheJobAndIsNamed) {
  StartTraining("kill-scheduler");
  KillAndExpectSentence("scheduler");
}

TEST_F(Faults, AKilledLauncherLeavesNoProcess) {
  StartTraining("kill-launcher");
  program_->Signal(SIGKILL);
  program_->Wait(seconds(5));
  EXPECT_TRUE(Eventually(seconds(15), [&] { return ProcessesWith(mark_).empty(); }));
}

TEST_F(Faults, AStoppedWorkerIsLostAfterItsLease) {
  StartTraining("pause-worker");
  const pid_t pid = PidOf("worker");
  kill(pid, SIGSTOP);
  const ProgramEnd end = program_->Wait(seconds(25));
  EXPECT_EQ(end.exit_code, 1) << end.output;
  EXPECT_NE(end.output.find("worker"), std::string::npos) << end.output;
  EXPECT_TRUE(ProcessesWith(mark_).empty());
}

TEST_F(Faults, CtrlCStopsCleanlyWithACheckpoint) {
  StartTraining("ctrl-c");
  program_->Signal(SIGINT);
  const ProgramEnd end = program_->Wait(seconds(30));
  EXPECT_EQ(end.exit_code, 130) << end.output;
  EXPECT_EQ(TextAt(folder_, "r.json", "/status"), "interrupted");
  EXPECT_TRUE(ProcessesWith(mark_).empty());
  const ProgramEnd list = RunProgram(folder_.path(), {"checkpoint", "list", job_, "--set", mark_});
  EXPECT_NE(list.output.find("step-"), std::string::npos) << list.output;
}

TEST_F(Faults, SigtermStopsCleanly) {
  StartTraining("sigterm");
  program_->Signal(SIGTERM);
  EXPECT_EQ(program_->Wait(seconds(30)).exit_code, 143);
  EXPECT_TRUE(ProcessesWith(mark_).empty());
}

}  // namespace
}  // namespace dt::test
