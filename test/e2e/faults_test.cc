// Goal: whichever process is lost, the job ends within 15 s with a sentence that names it, writes a
// result file, and leaves no process behind. Method: real processes, killed by SIGKILL while they
// train. The lease is longer than the test, so only the parent of a process can report its end.
#include <filesystem>
#include <signal.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;

// A job with several workers goes on without one; see views_test.cc.
const Arguments kOneWorker = {"--set", "cluster.workers=1"};

class Faults : public ::testing::Test {
 protected:
  // Starts a job that would train for minutes, and waits until it trains. All of its processes have
  // `mark` on their command lines.
  void StartTraining(const std::string& mark, const Arguments& more = {}) {
    name_ = JobNameOfOurs(mark);
    mark_ = "job=" + name_;
    const std::string job = WriteTinyJob(folder_, {.epochs = 100000,
                                                   .slices = 2,
                                                   .servers = 2,
                                                   .workers = 2,
                                                   .more = "checkpoint: {every: 50, keep: 2}"});
    job_ = job;
    Arguments arguments = {"launch",   job,
                           "--set",    mark_,
                           "--set",    "cluster.lease=60s",
                           "--result", "r.json",
                           "--set",    "cluster.restarts=0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    program_ = std::make_unique<Program>(folder_.path(), arguments);
    ASSERT_TRUE(Eventually(seconds(30), [&] {
      return RunProgram(folder_.path(), {"checkpoint", "list", job, "--set", mark_})
                 .output.find("step-") != std::string::npos;
    })) << program_->Output();
  }

  // The pid of a child that runs this role; -1: there is none.
  pid_t PidOf(const std::string& role) const {
    const std::vector<pid_t> found = ProcessesWith(mark_, role);
    return found.empty() ? -1 : found.front();
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
    // This is the scheduler's own sentence, which also says how to resume: so it was told of the
    // end.
    const std::string named = fmt::format("(pid {}{}", pid, role == "scheduler" ? ")" : " on ");
    EXPECT_THAT(what, HasSubstr(named));
    EXPECT_THAT(what, HasSubstr("was killed by signal 9 (Killed)"));
  }

  // Entries of the job's folder that belong to this launch only.
  std::vector<std::string> OfThisRun() const {
    std::vector<std::string> found;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_.path() + "/runs/" + name_)) {
      const std::string name = entry.path().filename();
      for (const char* kind : {"launch-", "rows-", "server-"}) {
        if (name.starts_with(kind)) found.push_back(name);
      }
    }
    std::ranges::sort(found);
    return found;
  }

  TempFolder folder_;
  std::string name_, mark_, job_;
  std::unique_ptr<Program> program_;
};

TEST_F(Faults, AKilledWorkerEndsTheJobAndIsNamed) {
  StartTraining("kill-worker", kOneWorker);
  KillAndExpectSentence("worker");
}

TEST_F(Faults, AKilledServerEndsTheJobAndIsNamed) {
  StartTraining("kill-server");
  KillAndExpectSentence("server");
}

TEST_F(Faults, TheLastLinesOfALostProcessAreShown) {
  StartTraining("last-lines", {"--log-level", "info"});
  const pid_t pid = PidOf("server");
  ASSERT_GT(pid, 0);  // kill(-1) would end every process of the machine.
  kill(pid, SIGKILL);
  const ProgramEnd end = program_->Wait(seconds(15));
  const size_t at = end.output.find("\n  the last lines of server ");
  ASSERT_NE(at, std::string::npos) << end.output;
  EXPECT_THAT(end.output.substr(at), HasSubstr(" info server."));
}

TEST_F(Faults, EveryLineOfALogInJsonIsJsonToTheLast) {
  StartTraining("json",
                {"--set", "observe.log=json", "--log-level", "info", "--set", "cluster.workers=1"});
  const pid_t pid = PidOf("worker");
  ASSERT_GT(pid, 0);
  kill(pid, SIGKILL);
  const ProgramEnd end = program_->Wait(seconds(15));
  nlohmann::json started, error, last;
  for (const std::string_view line : SplitText(end.output, '\n')) {
    // The page's address is on standard output and is not JSON.
    if (line.empty() || line.starts_with("page ")) continue;
    last = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(last.is_object()) << line;
    if (last["event"] == "launch.started") started = last;
    if (last["event"] == "error") error = last;
  }
  EXPECT_TRUE(started["pid"].is_number()) << end.output;
  EXPECT_THAT(error.value("what", ""), HasSubstr("was killed by signal 9")) << end.output;
  EXPECT_EQ(last["event"], "launch.last_lines");
}

TEST_F(Faults, FoldersOfAKilledRunAreRemovedByTheNext) {
  StartTraining("leftovers", {"--set", "checkpoint.durability=log"});
  EXPECT_THAT(OfThisRun(),
              ::testing::ElementsAre(::testing::StartsWith("launch-"), "server-1", "server-2"));
  // Stopped first, so that none of them can end cleanly.
  for (const pid_t pid : ProcessesWith(mark_)) kill(pid, SIGSTOP);
  for (const pid_t pid : ProcessesWith(mark_)) kill(pid, SIGKILL);
  program_->Wait(seconds(5));
  ASSERT_TRUE(Eventually(seconds(15), [&] { return ProcessesWith(mark_).empty(); }));
  EXPECT_EQ(OfThisRun().size(), 3u);
  const ProgramEnd next = RunProgram(
      folder_.path(), {"launch", job_, "--set", mark_, "--set", "train.epochs=1", "--set",
                       "cluster.servers=1", "--set", "checkpoint.durability=log"});
  EXPECT_EQ(next.exit_code, 0) << next.output;
  EXPECT_EQ(OfThisRun(), Arguments());
}

TEST_F(Faults, AKilledSchedulerEndsTheJobAndIsNamed) {
  StartTraining("kill-scheduler", {"--set", "cluster.restarts=0"});
  KillAndExpectSentence("scheduler");
}

TEST_F(Faults, AKilledLauncherLeavesNoProcess) {
  StartTraining("kill-launcher");
  program_->Signal(SIGKILL);
  program_->Wait(seconds(5));
  EXPECT_TRUE(Eventually(seconds(15), [&] { return ProcessesWith(mark_).empty(); }));
}

TEST_F(Faults, AStoppedWorkerIsLostAfterItsLease) {
  StartTraining("pause-worker", {"--set", "cluster.lease=3s", "--set", "cluster.workers=1"});
  const pid_t pid = PidOf("worker");
  ASSERT_GT(pid, 0);
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
