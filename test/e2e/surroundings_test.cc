// Goal: whatever files the program finds at its paths, whatever other programs wrote there, and
// whichever signal comes, it neither hangs nor crashes, and damages nothing. Method: the real
// program in a folder of such files.
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using Words = std::vector<std::string>;

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Surroundings : public ::testing::Test {
 protected:
  std::string At(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string Pipe(const std::string& name) const {
    EXPECT_EQ(mkfifo(At(name).c_str(), 0600), 0);
    return name;
  }
  ProgramEnd Run(const Words& arguments) const {
    return RunProgram(folder_.path(), arguments, seconds(30));
  }
  // The command ends by itself with this exit code, and prints this sentence.
  void Expect(const Words& arguments, int code, const std::string& sentence) const {
    const ProgramEnd end = Run(arguments);
    EXPECT_EQ(end.exit_code, code) << arguments.front() << ": " << end.output;
    EXPECT_TRUE(Has(end.output, sentence)) << arguments.front() << ": " << end.output;
  }

  const TempFolder folder_;
};

TEST_F(Surroundings, FoldersOfResultsAreMadeForEveryCommand) {
  const std::string job = WriteTinyJob(folder_, {.epochs = 1});
  ASSERT_EQ(Run({"train", job, "--result", "a/b/r.json"}).exit_code, 0);
  const std::string checkpoint = "runs/tiny/checkpoints/step-000000000012";
  ASSERT_TRUE(fs::exists(At(checkpoint)));
  const Words commands[] = {
      {"report", "a/b/r.json", "--out", "c/d/page.html"},
      {"predict", job, "--checkpoint", checkpoint, "--data", "valid.libsvm", "--out", "e/f/p.csv"},
      {"export", checkpoint, "--format", "npz", "--out", "g/h/x.npz"},
      {"data", "generate", "--rows", "10", "--out", "i/j"}};
  for (const Words& command : commands) {
    const ProgramEnd end = Run(command);
    EXPECT_EQ(end.exit_code, 0) << command.front() << ": " << end.output;
    EXPECT_TRUE(fs::exists(At(command.back()))) << command.front();
  }
}

TEST_F(Surroundings, WhatIsNoFileIsNotReplaced) {
  folder_.Write("result.json", R"({"job": "j"})");
  Pipe("page");
  Expect({"report", "result.json", "--out", "page"}, 1, "nobody reads the pipe page");
  EXPECT_TRUE(fs::is_fifo(At("page")));
  fs::create_symlink("/proc/self/fd/1", At("stdout"));
  Expect({"report", "result.json", "--out", "stdout"}, 0, "</html>");
  EXPECT_TRUE(fs::is_symlink(At("stdout")));
  const std::string job = WriteTinyJob(folder_, {.epochs = 1});
  const ProgramEnd train = Run({"train", job, "--result", "stdout"});
  EXPECT_TRUE(Has(train.output, "job tiny: 1 epoch,")) << train.output;
  EXPECT_TRUE(Has(train.output, "\"status\": \"completed\"")) << train.output;
}

TEST_F(Surroundings, OddStateOfAJobEndsStatusWithASentence) {
  const std::string job = WriteTinyJob(folder_, {});
  fs::create_directories(At("runs/tiny"));
  const std::string odd[] = {"",
                             "[]",
                             "7",
                             "{\"scheduler\": 7}",
                             "{\"scheduler\": null}",
                             "{\"scheduler\": [\"tcp://127.0.0.1:1\"]}",
                             "{\"scheduler\": \"inproc://x\", \"http\": 3}",
                             "{\"scheduler\": \"nonsense\"}",
                             std::string(1'000'000, '[')};
  for (const std::string& text : odd) {
    folder_.Write("runs/tiny/run.json", text);
    const ProgramEnd end = Run({"status", job});
    EXPECT_EQ(end.signal, 0) << text.substr(0, 40) << ": " << end.output;
    EXPECT_GT(end.exit_code, 0) << text.substr(0, 40) << ": " << end.output;
    EXPECT_TRUE(Has(end.output, "dovetail: ")) << text.substr(0, 40) << ": " << end.output;
  }
  fs::remove(At("runs/tiny/run.json"));
  Pipe("runs/tiny/run.json");
  Expect({"status", job}, 2, "run.json is a pipe, not a file");
}

TEST_F(Surroundings, OddResultsEndReportWithASentence) {
  folder_.Write("good.json", R"({"job": "j", "metrics": {"test": {"auc": 0.7}}})");
  folder_.Write("odd.json", R"({"test": {"auc": "high"}})");
  folder_.Write("deep.json", std::string(1'000'000, '['));
  Pipe("pipe");
  Expect({"report", "good.json", "--out", "p", "--truth", "odd.json"}, 0, "report: p");
  Expect({"report", "good.json", "--out", "p", "--truth", "deep.json"}, 3, "deep.json");
  Expect({"report", "good.json", "--out", "p", "--truth", "pipe"}, 2, "pipe is a pipe, not a file");
  Expect({"report", "pipe", "--out", "p"}, 2, "pipe is a pipe, not a file");
  Expect({"report", "deep.json", "--out", "p"}, 3, "deep.json");
}

TEST_F(Surroundings, APipeWhereAFileIsMeantIsSaid) {
  const std::string job = WriteTinyJob(folder_, {.epochs = 1});
  Pipe("pipe");
  const std::string sentence = "pipe is a pipe, not a file";
  Expect({"train", job, "--set", "data.train=[pipe]"}, 2, sentence);
  Expect({"train", "pipe"}, 2, "pipe");
  Expect({"plan", job, "--set", "data.stats=pipe"}, 2, "pipe");
  ASSERT_EQ(Run({"train", job}).exit_code, 0);
  const std::string checkpoint = "runs/tiny/checkpoints/step-000000000012";
  for (const std::string file : {"dense.bin", "manifest.json"}) {
    fs::remove(At(checkpoint + "/" + file));
    Pipe(checkpoint + "/" + file);
    for (const Words& command : {Words{"checkpoint", "verify", checkpoint},
                                 Words{"train", job, "--resume", "auto", "--set", "train.epochs=2"},
                                 Words{"export", checkpoint, "--format", "npz"}}) {
      const ProgramEnd end = Run(command);
      EXPECT_GT(end.exit_code, 0) << command.front() << " " << file << ": " << end.output;
      EXPECT_TRUE(Has(end.output, file)) << command.front() << ": " << end.output;
    }
  }
}

TEST_F(Surroundings, ACacheThatIsCutUnderARunningJobIsNamed) {
  const std::string job = WriteTinyJob(folder_, {.rows = 20000, .epochs = 100000});
  Program train(folder_.path(), {"train", job, "--log-level", "info"});
  ASSERT_TRUE(Eventually(seconds(30), [&] { return Has(train.Output(), "job.running"); }))
      << train.Output();
  for (const auto& file : fs::directory_iterator(At("runs/tiny/cache"))) {
    if (file.path().extension() == ".dtcache") fs::resize_file(file.path(), 4096);
  }
  const ProgramEnd end = train.Wait(seconds(30));
  EXPECT_EQ(end.exit_code, 1) << end.output;
  EXPECT_TRUE(Has(end.output, ".dtcache was cut while it was in use")) << end.output;
}

TEST_F(Surroundings, NoBytesOfOthersSteerTheTerminal) {
  const std::string job = WriteTinyJob(folder_, {});
  folder_.Write("bad.libsvm", "1 1:1\n1 \x1b]0;title\x07:\xc2\x9b\xff\n");
  folder_.Write("bad.yaml", "\"\x1b[2J\": 1\n");
  folder_.Write("\x1b[31m.json", R"({"job": "j"})");
  const Words commands[] = {{"train", job, "--set", "data.train=[bad.libsvm]"},
                            {"train", job, "--set", "data.train=[\"\\e[31m.libsvm\"]"},
                            {"train", "bad.yaml"},
                            {"\x1b[31mtrain"},
                            {"report", "\x1b[31m.json", "--out", "\x1b[32m.html"},
                            {"checkpoint", "list", job, "--set", "checkpoint.dir=\"\\e[31m\""}};
  for (const Words& command : commands) {
    const ProgramEnd end = Run(command);
    EXPECT_TRUE(Has(end.output, "\\x1b")) << end.output;
    for (const char* steering : {"\x1b", "\x07", "\x9b", "\xff"}) {
      EXPECT_FALSE(Has(end.output, steering)) << command.front() << ": " << end.output;
    }
  }
}

TEST_F(Surroundings, NamesThatAreNoUtf8ArePlanned) {
  const std::string job = WriteTinyJob(folder_, {});
  std::string text = folder_.Read("tiny.yaml");
  for (size_t at; (at = text.find("hidden")) != text.npos;) text.replace(at, 6, "h\xff\x1b");
  text = folder_.Write("odd.yaml", text);
  for (const char* format : {"text", "json", "dot", "html"}) {
    const ProgramEnd plan = Run({"plan", text, "--format", format});
    EXPECT_NE(plan.exit_code, -1) << format << plan.output;
    EXPECT_FALSE(Has(plan.output, "\x1b") || Has(plan.output, "\xff")) << format;
  }
}

TEST_F(Surroundings, ASecretInTheCommandIsNeverPrinted) {
  setenv("DT_TEST_SECRET", "hunter2", 1);
  const std::string job = WriteTinyJob(folder_, {});
  const std::string command =
      "data={format: pipe, valid: [v.csv], columns: [{name: label, role: label}, {name: features, "
      "type: id}], command: \"test ${DT_TEST_SECRET} = hunter''2 && printf "
      "'label,features\\\\n1,2\\\\n0,3\\\\n' && exit 5\"}";
  folder_.Write("v.csv", "label,features\n1,2\n0,3\n");
  for (const char* verb : {"train", "launch"}) {
    const ProgramEnd end =
        Run({verb, job, "--set", command, "--result", "r.json", "--log-level", "debug"});
    EXPECT_EQ(end.exit_code, 1) << end.output;
    EXPECT_TRUE(Has(end.output, "${DT_TEST_SECRET}")) << end.output;
    EXPECT_TRUE(Has(end.output, "ended with status 5")) << "the shell knew it: " << end.output;
    EXPECT_FALSE(Has(end.output + folder_.Read("r.json"), "hunter2")) << end.output;
  }
  unsetenv("DT_TEST_SECRET");
  Expect({"train", job, "--set", command}, 2, "the environment variable DT_TEST_SECRET is not set");
}

TEST_F(Surroundings, ChildrenOfLaunchInheritNothingThatIsOpen) {
  const std::string name = JobNameOfOurs("inherits");
  const std::string job = WriteTinyJob(folder_, {.job = name, .epochs = 100000});
  const int careless = open(folder_.Write("open", "").c_str(), O_RDONLY);
  Program launch(folder_.path(), {"launch", job, "--log-level", "info"});
  close(careless);
  ASSERT_TRUE(Eventually(seconds(30), [&] { return Has(launch.Output(), "job.running"); }))
      << launch.Output();
  int holders = 0;
  for (const pid_t pid : ProcessesWith(name)) {
    for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
      std::error_code gone;
      if (fs::read_symlink(entry, gone) == At("open")) ++holders;
    }
  }
  EXPECT_EQ(holders, 1) << "launch itself";
}

TEST_F(Surroundings, AHangupStopsCleanlyUnlessItIsIgnored) {
  const std::string job =
      WriteTinyJob(folder_, {.epochs = 100000, .more = "checkpoint: {every: 1000000}"});
  const Words train = {"train", job, "--log-level", "info", "--result", "r.json"};
  const auto running = [](const Program& program) {
    return Eventually(seconds(30), [&] { return Has(program.Output(), "job.running"); });
  };
  {
    Program program(folder_.path(), train);
    ASSERT_TRUE(running(program)) << program.Output();
    program.Signal(SIGHUP);
    EXPECT_EQ(program.Wait(seconds(30)).exit_code, 129);
    EXPECT_EQ(TextAt(folder_, "r.json", "/status"), "interrupted");
    EXPECT_TRUE(Has(Run({"checkpoint", "list", job}).output, "step-"));
  }
  const auto before = std::signal(SIGHUP, SIG_IGN);
  Program program(folder_.path(), train);
  std::signal(SIGHUP, before);
  ASSERT_TRUE(running(program)) << program.Output();
  program.Signal(SIGHUP);
  EXPECT_FALSE(Eventually(std::chrono::milliseconds(500), [&] {
    return Has(program.Output(), "signal");
  })) << program.Output();
  program.Signal(SIGTERM);
  EXPECT_EQ(program.Wait(seconds(30)).exit_code, 143);
}

TEST_F(Surroundings, ASecondLaunchLeavesTheJobThatRunsAlone) {
  const std::string job = WriteTinyJob(folder_, {.epochs = 100000});
  Program first(folder_.path(), {"launch", job, "--result", "first.json"});
  const auto answers = [&] { return Run({"status", job}).exit_code == 0; };
  ASSERT_TRUE(Eventually(seconds(30), answers)) << first.Output();
  const auto running = folder_.Read("runs/tiny/run.json");
  const auto names = [&] {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(At("runs/tiny"))) found.insert(entry.path());
    return found;
  };
  const auto before = names();
  for (int i = 0; i < 2; ++i) {
    Expect({"launch", job, "--result", "second.json"}, 1, "another process has it open");
  }
  EXPECT_TRUE(Has(TextAt(folder_, "second.json", "/error/what"), "the scheduler's state"));
  EXPECT_EQ(names(), before);
  EXPECT_EQ(folder_.Read("runs/tiny/run.json"), running);
  EXPECT_TRUE(answers());
  first.Signal(SIGTERM);
  EXPECT_EQ(first.Wait(seconds(30)).exit_code, 143) << first.Output();
  EXPECT_GT(NumberAt(folder_, "first.json", "/steps"), 0) << "what its scheduler wrote";
  EXPECT_FALSE(fs::exists(At("runs/tiny/run.json")));
  for (const std::string& name : names()) EXPECT_FALSE(Has(name, "/launch")) << name;
}

TEST_F(Surroundings, AFileThatMayNotGrowIsASentence) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{.rlim_cur = 65536, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const ProgramEnd end = Run({"data", "generate", "--rows", "10000", "--out", "a"});
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(end.exit_code, 1) << end.output;
  EXPECT_TRUE(Has(end.output, "a/train.tsv: File too large")) << end.output;
  EXPECT_FALSE(fs::exists(At("a/train.tsv.part")));
}

TEST_F(Surroundings, OtherAccountsSeeNoRows) {
  const std::string job = WriteTinyJob(folder_, {.epochs = 1});
  ASSERT_EQ(Run({"launch", job}).exit_code, 0);
  const auto shut = [&](const std::string& path) {
    return fs::status(At(path)).permissions() == fs::perms::owner_all;
  };
  for (const char* path : {"runs/tiny/checkpoints", "runs/tiny/state"}) {
    EXPECT_TRUE(shut(path)) << path;
  }
  EXPECT_FALSE(shut("runs/tiny"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // Sanitizers reserve too many.
// Processes with a limited address space train over TCP. If the limit is too small even for that,
// they end with a sentence and never by a signal.
class Limits : public ::testing::Test {
 protected:
  ~Limits() override { setenv("DT_PROGRAM", program_.c_str(), 1); }
  // Limits the address space of every process of the program from now on.
  void LimitAddresses(uint64_t kilobytes) {
    const std::string script = folder_.Write(
        "limited.sh",
        fmt::format("#!/bin/sh\nulimit -c 0\nulimit -v {}\nexec {} \"$@\"\n", kilobytes, program_));
    chmod(script.c_str(), 0700);
    setenv("DT_PROGRAM", script.c_str(), 1);
  }

  const std::string program_ = std::getenv("DT_PROGRAM");
  const TempFolder folder_;
  const std::string job_ = WriteTinyJob(folder_, {.servers = 2, .workers = 2});
};

TEST_F(Limits, AJobWithoutAddressesForSharedMemoryUsesTcp) {
  ASSERT_EQ(RunProgram(folder_.path(), {"launch", job_, "--result", "free.json"}).exit_code, 0);
  for (const uint64_t gigabytes : {12, 20, 30, 45}) {
    SCOPED_TRACE(gigabytes);
    LimitAddresses(gigabytes << 20);
    const ProgramEnd end = RunProgram(folder_.path(), {"launch", job_, "--result", "r.json"},
                                      std::chrono::seconds(30));
    EXPECT_EQ(end.exit_code, 0) << end.output;
    EXPECT_EQ(ChecksumOf(folder_, "r.json"), ChecksumOf(folder_, "free.json"));
  }
}

TEST_F(Limits, TooFewAddressesAreASentence) {
  for (const char* command : {"train", "launch"}) {
    for (const uint64_t megabytes : {120, 200, 300, 500, 700}) {
      SCOPED_TRACE(fmt::format("{} {}", command, megabytes));
      LimitAddresses(megabytes << 10);
      const ProgramEnd end = RunProgram(folder_.path(), {command, job_});
      EXPECT_EQ(end.exit_code, 1) << end.output;
      EXPECT_NE(end.output.find("a job takes at least 1 GiB (ulimit -v)"), std::string::npos)
          << end.output;
    }
  }
}
#endif

}  // namespace
}  // namespace dt::test
