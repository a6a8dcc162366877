// Goal: launch starts whom it must with what they need, tells the scheduler who has ended, ends
// with the job's own error, and leaves nobody behind. Method: launch starts this very program,
// which then plays a role by a script: a list of actions for each process, in script.json.
#include <csignal>
#include <filesystem>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands.h"
#include "common/base/log.h"
#include "common/base/pause.h"
#include "common/base/text.h"
#include "common/control/process_end.h"
#include "common/storage/files.h"
#include "common/storage/json_file.h"
#include "test/support/tiny_job.h"

namespace dt::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRunFile[] = "runs/tiny/run.json";
constexpr char kEndpoint[] = "tcp://127.0.0.1:4242";

// ------------------------------------------------------------ a role, in a process of its own

class Role {
 public:
  explicit Role(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {
    const std::string child = ValueOf("--child");
    name_ = child == "0" ? "scheduler" : arguments_[0] + " " + child;
    if (fs::exists(name_ + ".pid")) name_ += " again";
    Write(name_ + ".pid", std::to_string(getpid()));
    Write(name_ + ".arguments", JoinText(arguments_, "\n"));
  }

  int Play() {
    const Result<Json> script = ReadJsonFile("script.json");
    if (!script.ok()) return 99;
    for (const Json& action : MemberOf(*script, name_)) {
      const std::string text = action.get<std::string>();
      const size_t space = std::min(text.find(' '), text.size());
      const std::string verb = text.substr(0, space);
      const std::string object = text.substr(std::min(space + 1, text.size()));
      if (verb != "exit") {
        Do(verb, object);
        continue;
      }
      if (name_ == "scheduler") Write("over", "");  // Others hear of the end, and end as well.
      return std::stoi(object);
    }
    return 0;
  }

 private:
  static void Write(const std::string& path, const std::string& text) {
    if (!WriteWholeFile(path, text).ok()) _exit(98);
  }
  std::string ValueOf(const std::string& flag) const {
    const auto at = std::ranges::find(arguments_, flag);
    return at == arguments_.end() ? "" : *(at + 1);
  }
  void Do(const std::string& verb, const std::string& object) {
    if (verb == "log") std::fprintf(stderr, "%s\n", object.c_str());
    if (verb == "touch") Write(object, "");
    if (verb == "result") Write(ValueOf("--result"), object);
    if (verb == "die") raise(std::stoi(object));
    if (verb == "signal_launch") kill(getppid(), std::stoi(object));
    if (verb == "serve") {
      Write(kRunFile, Json({{"pid", getpid()}, {"scheduler", kEndpoint}}).dump());
    }
    if (verb == "serve_elsewhere") {
      Write(kRunFile, Json({{"pid", getpid()}, {"scheduler", "tcp://127.0.0.1:2"}}).dump());
    }
    if (verb == "await") {
      while (!fs::exists(object)) Pause(milliseconds(1));
    }
    if (verb == "hear") Hear(object);
    if (verb == "await_sigterm") {
      sigset_t set;
      sigemptyset(&set);
      sigaddset(&set, SIGTERM);
      sigprocmask(SIG_BLOCK, &set, nullptr);
      Write("ready", "");
      int number = 0;
      sigwait(&set, &number);
    }
  }
  // Waits for the end of a process, and keeps what is said of it.
  void Hear(const std::string& path) {
    for (;;) {
      const std::vector<ProcessEnd> ends = reader_.Take();
      if (ends.empty()) {
        Pause(milliseconds(1));
        continue;
      }
      Write(path, fmt::format("{} {}{}", ends[0].name, ends[0].how,
                              ends[0].returns ? ", and returns" : ""));
      return;
    }
  }

  const std::vector<std::string> arguments_;
  std::string name_;
  ProcessEndReader reader_{STDIN_FILENO};
};

// ------------------------------------------------------------ the tests

// The result file of a scheduler whose job has failed.
std::string Failed(const std::string& what, const Json& events = Json::array()) {
  return "result " +
         Json({{"job", "tiny"},
               {"status", "failed"},
               {"error", {{"what", what}, {"where", "tiny.yaml:3"}, {"hint", "do otherwise"}}},
               {"events", events}})
             .dump();
}

using Script = std::map<std::string, std::vector<std::string>>;

class LaunchTest : public ::testing::Test {
 protected:
  LaunchTest() {
    before_ = fs::current_path();
    fs::current_path(folder_.path());
    fs::create_directories("runs/tiny");
    line_.job_path = test::WriteTinyJob(folder_, {.rows = 8});
    line_.result_path = folder_.path() + "/result.json";
    line_.resume = "auto";
  }
  ~LaunchTest() override { fs::current_path(before_); }

  struct End {
    int code = 0;
    std::string errors;
    Json result;
  };
  End Launch(const Script& script) {
    WriteScript(script);
    StopSignals signals;
    testing::internal::CaptureStderr();
    End end;
    end.code = RunLaunch(line_, signals);
    end.errors = testing::internal::GetCapturedStderr();
    end.result = ReadJsonFile(line_.result_path).value_or(Json());
    ExpectNobodyIsLeft();
    return end;
  }
  void WriteScript(const Script& script) const {
    folder_.Write("script.json", Json(script).dump());
  }
  static void ExpectNobodyIsLeft() {
    for (const auto& entry : fs::directory_iterator(".")) {
      if (entry.path().extension() != ".pid") continue;
      const pid_t pid = std::stoi(ReadWholeFile(entry.path().string()).value());
      EXPECT_NE(kill(pid, 0), 0) << entry.path();
    }
    for (const auto& entry : fs::directory_iterator("runs/tiny")) {
      EXPECT_THAT(entry.path().string(), Not(HasSubstr("launch"))) << "its folder is gone";
    }
  }
  std::string ArgumentsOf(const std::string& name) const {
    return folder_.Read(name + ".arguments");
  }

  const test::TempFolder folder_;
  fs::path before_;
  CommandLine line_;
};

TEST_F(LaunchTest, AJobThatEndsWellEndsWithZeroAndTheSchedulersResult) {
  const End end = Launch({{"scheduler",
                           {"serve", "await server 1.pid", "await worker 2.pid",
                            "result {\"job\": \"tiny\", \"steps\": 12}", "exit 0"}},
                          {"server 1", {"exit 0"}},
                          {"worker 2", {"exit 0"}}});
  EXPECT_EQ(end.code, 0);
  EXPECT_EQ(end.errors, "");
  EXPECT_EQ(CountOf(end.result, "steps"), 12u);
  EXPECT_GT(NumberOf(end.result, "seconds_total"), 0);
}

TEST_F(LaunchTest, EachProcessIsToldItsNumberTheJobAndTheScheduler) {
  line_.overrides = {"cluster.servers=2", "cluster.workers=2"};
  line_.no_progress = true;
  EXPECT_EQ(Launch({{"scheduler", {"serve", "await worker 4.pid", "exit 0"}}}).code, 0);
  EXPECT_THAT(ArgumentsOf("scheduler"),
              AllOf(HasSubstr("scheduler\n--child\n0\n" + line_.job_path + "\n"),
                    HasSubstr("\n--set\ncluster.servers=2\n--set\ncluster.workers=2\n"),
                    HasSubstr("\n--resume\nauto"), HasSubstr("\n--no-progress")));
  for (const char* role : {"server 1", "server 2", "worker 3", "worker 4"}) {
    const std::string arguments = ArgumentsOf(role);
    EXPECT_THAT(arguments, HasSubstr(std::string("--scheduler\n") + kEndpoint)) << role;
    EXPECT_THAT(arguments, HasSubstr("\n--set\ncluster.servers=2\n")) << role;
    EXPECT_THAT(arguments, Not(HasSubstr("--resume"))) << role;
  }
  EXPECT_EQ(ArgumentsOf("server 3") + ArgumentsOf("worker 5"), "");
}

// A run.json of an earlier run leads to a scheduler that is gone, or to a stranger.
TEST_F(LaunchTest, TheAddressOfAnEarlierSchedulerIsNotTaken) {
  folder_.Write(kRunFile, Json({{"pid", 1}, {"scheduler", "tcp://127.0.0.1:1"}}).dump());
  EXPECT_EQ(Launch({{"scheduler", {"serve", "await worker 2.pid", "exit 0"}}}).code, 0);
  EXPECT_THAT(ArgumentsOf("server 1"), HasSubstr(kEndpoint));
}

TEST_F(LaunchTest, ALostProcessIsToldToTheSchedulerWhoseErrorIsTheJobs) {
  line_.overrides = {"cluster.restarts=0"};
  const Json lost = Json::array({{{"kind", "worker_lost"}, {"id", 2}}});
  const End end =
      Launch({{"scheduler", {"serve", "hear heard", Failed("worker 2 is lost", lost), "exit 1"}},
              {"server 1", {"await over"}},
              {"worker 2", {"log its last words", "die 9"}}});
  EXPECT_EQ(end.code, 1);
  EXPECT_EQ(folder_.Read("heard"), "worker 2 was killed by signal 9 (Killed)");
  EXPECT_THAT(end.errors, HasSubstr("dovetail: worker 2 is lost (tiny.yaml:3)\n  do otherwise\n"));
  EXPECT_THAT(end.errors, HasSubstr("  the last lines of worker 2:\n    its last words\n"));
  EXPECT_EQ(TextOf(MemberOf(end.result, "error"), "what"), "worker 2 is lost");
}

TEST_F(LaunchTest, WhatALostProcessSaysItselfGoesAlong) {
  Launch({{"scheduler", {"serve", "hear heard", Failed("lost"), "exit 1"}},
          {"server 1", {Failed("the disk is full"), "exit 1"}},
          {"worker 2", {"await over"}}});
  EXPECT_EQ(folder_.Read("heard"),
            "server 1 exited with code 1: the disk is full (tiny.yaml:3); do otherwise");
}

TEST_F(LaunchTest, TheJobsExitCodeIsThatOfTheSchedulersError) {
  for (const int code : {1, 2, 3}) {
    const End end =
        Launch({{"scheduler", {Failed("no such thing"), "exit " + std::to_string(code)}}});
    EXPECT_EQ(end.code, code);
    EXPECT_THAT(end.errors, HasSubstr("dovetail: no such thing"));
    EXPECT_EQ(ArgumentsOf("server 1"), "") << "nobody else was started";
    fs::remove("scheduler.pid");
  }
}

TEST_F(LaunchTest, ASchedulerThatDiesIsNamedWithItsEndAndItsLastLines) {
  line_.overrides = {"cluster.restarts=0"};
  const End end = Launch({{"scheduler", {"serve", "await ready", "log out of ideas", "die 6"}},
                          {"server 1", {"await over"}},
                          {"worker 2", {"touch ready", "await over"}}});
  EXPECT_EQ(end.code, 1);
  EXPECT_THAT(end.errors, HasSubstr("dovetail: the scheduler (pid "));
  EXPECT_THAT(end.errors, HasSubstr(") was killed by signal 6"));
  EXPECT_THAT(end.errors, HasSubstr("  the last lines of scheduler:\n    out of ideas\n"));
  EXPECT_EQ(TextOf(end.result, "status"), "failed") << "launch writes it in its place";
  EXPECT_EQ(TextOf(end.result, "job"), "tiny");
}

TEST_F(LaunchTest, ASchedulerThatIsKilledStartsAgainAndHearsWhoEndedMeanwhile) {
  line_.overrides = {"cluster.restarts=1", "checkpoint.durability=checkpoint"};
  const End end =
      Launch({{"scheduler", {"serve", "await ready", "die 9"}},
              {"scheduler again", {"serve", "touch back", "hear heard", Failed("lost"), "exit 1"}},
              {"server 1", {"await back", "exit 1"}},
              {"worker 2", {"touch ready", "await over"}}});
  EXPECT_EQ(end.code, 1);
  EXPECT_EQ(folder_.Read("heard"), "server 1 exited with code 1");
  EXPECT_EQ(ArgumentsOf("scheduler again"), ArgumentsOf("scheduler") + "\n--follows-killed");
  EXPECT_THAT(end.errors, HasSubstr("dovetail: lost"));
}

TEST_F(LaunchTest, ASchedulerThatIsKilledWhenItsResultIsWrittenHasEndedTheJob) {
  line_.overrides = {"cluster.restarts=1"};
  const End end = Launch({{"scheduler", {"serve", "await ready", Failed("lost"), "die 9"}},
                          {"server 1", {"await over"}},
                          {"worker 2", {"touch ready", "await over"}}});
  EXPECT_EQ(end.code, 1);
  EXPECT_EQ(ArgumentsOf("scheduler again"), "");
  EXPECT_THAT(end.errors, HasSubstr("dovetail: lost"));
}

TEST_F(LaunchTest, ASchedulerThatComesBackElsewhereIsOfNoUse) {
  line_.overrides = {"cluster.restarts=1"};
  const End end = Launch({{"scheduler", {"serve", "await ready", "die 9"}},
                          {"scheduler again", {"serve_elsewhere", "await over"}},
                          {"server 1", {"await over"}},
                          {"worker 2", {"touch ready", "await over"}}});
  EXPECT_EQ(end.code, 1);
  EXPECT_THAT(end.errors, HasSubstr("was killed by signal 9 (Killed) and has not come back: it "
                                    "listens at tcp://127.0.0.1:2, but the others look"));
}

TEST_F(LaunchTest, AServerThatIsKilledStartsAgainAsOftenAsTheJobSays) {
  line_.overrides = {"cluster.restarts=1", "checkpoint.durability=log"};
  const End end =
      Launch({{"scheduler",
               {"serve", "hear heard", "await server 1 again.pid", "await worker 2.pid", "exit 0"}},
              {"server 1", {"die 9"}},
              {"server 1 again", {"await over"}},
              {"worker 2", {"await over"}}});
  EXPECT_EQ(end.code, 0) << end.errors;
  EXPECT_EQ(folder_.Read("heard"), "server 1 was killed by signal 9 (Killed), and returns");
  EXPECT_EQ(ArgumentsOf("server 1 again"), ArgumentsOf("server 1"));
}

TEST_F(LaunchTest, AServerThatIsKilledOnceTooOftenIsLost) {
  line_.overrides = {"cluster.restarts=1", "checkpoint.durability=log"};
  const Json lost = Json::array({{{"kind", "server_lost"}, {"id", 1}}});
  const End end =
      Launch({{"scheduler",
               {"serve", "hear first", "hear second", Failed("server 1 is lost", lost), "exit 1"}},
              {"server 1", {"die 9"}},
              {"server 1 again", {"await first", "die 6"}},
              {"worker 2", {"await over"}}});
  EXPECT_EQ(end.code, 1);
  EXPECT_EQ(folder_.Read("second"), "server 1 was killed by signal 6 (Aborted)");
  EXPECT_THAT(end.errors, HasSubstr("  server 1 has logged nothing; --log-level info"));
}

// It has told the scheduler why, and would end in the same way again.
TEST_F(LaunchTest, AServerThatEndedByItselfIsNotStartedAgain) {
  line_.overrides = {"cluster.restarts=3", "checkpoint.durability=log"};
  EXPECT_EQ(Launch({{"scheduler", {"serve", "hear heard", Failed("lost"), "exit 1"}},
                    {"server 1", {"exit 1"}},
                    {"worker 2", {"await over"}}})
                .code,
            1);
  EXPECT_EQ(folder_.Read("heard"), "server 1 exited with code 1");
  EXPECT_EQ(ArgumentsOf("server 1 again"), "");
}

// One signal is all that a process of tests can take: these run in processes of their own.
class LaunchSignalTest : public LaunchTest {
 protected:
  [[noreturn]] void LaunchHere() {
    StopSignals signals;
    _exit(RunLaunch(line_, signals));
  }
};

TEST_F(LaunchSignalTest, OneThatComesBeforeTheJobBeganEndsItAtOnce) {
  WriteScript({{"scheduler", {"signal_launch 2", "await over"}}});
  EXPECT_EXIT(LaunchHere(), testing::ExitedWithCode(130), "signal 2: stopped before the job began");
  ExpectNobodyIsLeft();
}

TEST_F(LaunchSignalTest, OneIsPassedOnToTheSchedulerWhichStopsTheJob) {
  const std::string interrupted = Failed("interrupted; go on with --resume auto");
  WriteScript({{"scheduler", {"serve", "await_sigterm", interrupted, "exit 1"}},
               {"server 1", {"await over"}},
               {"worker 2", {"await ready", "signal_launch 15", "await over"}}});
  EXPECT_EXIT(LaunchHere(), testing::ExitedWithCode(143),
              "signal 15: interrupted; go on with --resume auto");
  ExpectNobodyIsLeft();
  const Result<Json> result = ReadJsonFile(line_.result_path);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(TextOf(MemberOf(*result, "error"), "what"), HasSubstr("interrupted"));
}

}  // namespace
}  // namespace dt::cli

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool role = argc > 2 && arguments[1] == "--child";
  if (role) return dt::cli::Role(arguments).Play();
  dt::InitLog({.level = dt::LogLevel::kWarn, .role = ""});
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
