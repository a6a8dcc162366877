// Goal: a child's end is told as it was, none is left running, and what it logged is not lost.
// Method: /bin/sh as the child; what it does next is told by a pipe or a signal, never by time.
#include "cli/process/child_process.h"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/scratch_folder.h"

namespace dt::cli {
namespace {

using ::testing::HasSubstr;

constexpr Duration kLong = seconds(60);  // No test waits so long.

ChildProcess Shell(const std::string& script, const ChildStreams& streams = {}) {
  auto child = ChildProcess::Start("child", "/bin/sh", {"-c", script}, streams);
  EXPECT_TRUE(child.ok()) << child.status();
  return *std::move(child);
}

bool AllEnded(const std::vector<ChildProcess>& children) {
  return std::ranges::none_of(children, &ChildProcess::running);
}

// The end of one child.
ChildExit EndOf(ChildProcess child) {
  std::vector<ChildProcess> children;
  children.push_back(std::move(child));
  EXPECT_TRUE(WaitFor(children, kLong, AllEnded));
  return children[0].exit().value_or(ChildExit{-1, -1});
}

bool Exists(pid_t pid) { return kill(pid, 0) == 0; }

// Waits until the child has made a file: it is past what stands before that in its script.
void WaitForFile(const std::string& path) {
  EXPECT_TRUE(PollUntil(SystemClock().Now() + kLong, milliseconds(1),
                        [&] { return std::filesystem::exists(path); }));
}

std::string ContentOf(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(ChildProcess, ItsEndIsToldAsItWas) {
  struct Case {
    const char* script;
    int code, signal;
    const char* text;
  };
  for (const Case& c :
       {Case{"exit 0", 0, 0, "exited with code 0"}, Case{"exit 3", 3, 0, "exited with code 3"},
        Case{"exit 255", 255, 0, "exited with code 255"},
        Case{"kill -KILL $$", 0, SIGKILL, "was killed by signal 9 (Killed)"},
        Case{"kill -TERM $$", 0, SIGTERM, "was killed by signal 15 (Terminated)"},
        Case{"kill -SEGV $$", 0, SIGSEGV, "was killed by signal 11"}}) {
    const ChildExit end = EndOf(Shell(c.script));
    EXPECT_EQ(end.code, c.code) << c.script;
    EXPECT_EQ(end.signal, c.signal) << c.script;
    EXPECT_THAT(end.Text(), HasSubstr(c.text)) << c.script;
  }
}

TEST(ChildProcess, AProgramThatIsNotThereEndsWithTheCodeOfShells) {
  auto child = ChildProcess::Start("absent", "/nowhere/program", {});
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(EndOf(*std::move(child)).code, 127);
}

TEST(ChildProcess, ArgumentsArriveUnchanged) {
  const test::ScratchFolder folder;
  auto child = ChildProcess::Start(
      "child", "/bin/sh",
      {"-c", R"(printf '%s\n' "$@" > "$0")", folder / "out", "a b", "", "$HOME", "'\"\\"});
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(EndOf(*std::move(child)).code, 0);
  EXPECT_EQ(ContentOf(folder / "out"), "a b\n\n$HOME\n'\"\\\n");
}

// Ctrl-C goes to a process group; the parent decides what its children hear of it.
TEST(ChildProcess, IsInAGroupOfItsOwn) {
  int input[2];
  ASSERT_EQ(pipe2(input, O_CLOEXEC), 0);
  const test::ScratchFolder folder;
  ChildProcess child = Shell("touch " + (folder / "up") + "; read -r line", {.input = input[0]});
  close(input[0]);
  WaitForFile(folder / "up");
  EXPECT_EQ(getpgid(child.pid()), child.pid());
  close(input[1]);
  EXPECT_NE(EndOf(std::move(child)).code, 0) << "its input has ended";
}

TEST(ChildProcess, ReadsWhatItIsGivenAndNothingOfItsParents) {
  int input[2];
  ASSERT_EQ(pipe2(input, O_CLOEXEC), 0);
  ChildProcess child = Shell("read -r line && [ \"$line\" = hello ]", {.input = input[0]});
  close(input[0]);
  ASSERT_EQ(write(input[1], "hello\n", 6), 6);
  close(input[1]);
  EXPECT_EQ(EndOf(std::move(child)).code, 0);
  // Without one it reads the end at once, and has no other file open.
  EXPECT_EQ(EndOf(Shell("read -r line")).code, 1);
  const int open_here = open("/dev/null", O_RDONLY);  // Not closed on exec.
  EXPECT_EQ(EndOf(Shell(fmt::format("[ ! -e /proc/self/fd/{} ]", open_here))).code, 0);
  close(open_here);
}

TEST(ChildProcess, WhatItLogsBeforeItsEndIsAllThere) {
  testing::internal::CaptureStderr();
  std::vector<ChildProcess> children;
  children.push_back(
      Shell("i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo line $i >&2; done; "
            "printf 'no line feed' >&2; exit 4",
            {.keeps_log = true}));
  EXPECT_TRUE(WaitFor(children, kLong, AllEnded));
  const std::string passed_on = testing::internal::GetCapturedStderr();
  EXPECT_EQ(children[0].exit()->code, 4);
  const std::deque<std::string>& lines = children[0].last_lines();
  ASSERT_EQ(lines.size(), 20u) << "the last ones";
  EXPECT_EQ(lines.front(), "line 12");
  EXPECT_EQ(lines[18], "line 30");
  EXPECT_EQ(lines.back(), "no line feed");
  EXPECT_TRUE(passed_on.starts_with("line 1\nline 2\n")) << passed_on;
  EXPECT_TRUE(passed_on.ends_with("line 30\nno line feed\n")) << passed_on;
}

TEST(WaitForChildren, ReturnsAtOnceWhenItIsDone) {
  std::vector<ChildProcess> none;
  int asked = 0;
  EXPECT_TRUE(WaitFor(none, Duration::zero(), [&](const auto&) { return ++asked == 1; }));
  EXPECT_EQ(asked, 1);
}

TEST(WaitForChildren, SaysSoIfTheTimeIsOver) {
  std::vector<ChildProcess> children;
  int input[2];
  ASSERT_EQ(pipe2(input, O_CLOEXEC), 0);
  children.push_back(Shell("read -r line", {.input = input[0]}));
  close(input[0]);
  EXPECT_FALSE(WaitFor(children, milliseconds(30), AllEnded));
  EXPECT_TRUE(children[0].running());
  close(input[1]);
  EXPECT_TRUE(WaitFor(children, kLong, AllEnded));
  EXPECT_TRUE(WaitFor(children, Duration::zero(), AllEnded)) << "an end stays";
}

TEST(WaitForChildren, EachEndIsSeenAsItComes) {
  std::vector<ChildProcess> children;
  children.push_back(Shell("exit 1"));
  int input[2];
  ASSERT_EQ(pipe2(input, O_CLOEXEC), 0);
  children.push_back(Shell("read -r line; exit 2", {.input = input[0]}));
  close(input[0]);
  ASSERT_TRUE(WaitFor(children, kLong, [](const auto& all) { return !all[0].running(); }));
  EXPECT_TRUE(children[1].running());
  EXPECT_EQ(children[0].exit()->code, 1);
  close(input[1]);
  ASSERT_TRUE(WaitFor(children, kLong, AllEnded));
  EXPECT_EQ(children[1].exit()->code, 2);
}

// One ends by itself on SIGTERM, one asks for the time to clean up, one does not listen.
TEST(StopAllChildren, WhoHeedsEndsWellAndWhoDoesNotIsKilled) {
  const test::ScratchFolder folder;
  std::vector<ChildProcess> children;
  int held[2];  // A shell that waits for its input is interrupted by a signal.
  ASSERT_EQ(pipe2(held, O_CLOEXEC), 0);
  const std::string wait = "; read -r line";  // Ends with this process, too.
  const auto start = [&](const std::string& traps, const std::string& name) {
    children.push_back(Shell(traps + "touch " + (folder / name) + wait, {.input = held[0]}));
  };
  start("", "plain");
  start("trap 'touch " + (folder / "cleaned") + "; exit 5' TERM; ", "cleans");
  start("trap '' TERM; ", "deaf");
  for (const char* name : {"plain", "cleans", "deaf"}) WaitForFile(folder / name);
  StopAll(children, milliseconds(1500));
  EXPECT_TRUE(AllEnded(children));
  EXPECT_EQ(children[0].exit()->signal, SIGTERM);
  EXPECT_EQ(children[1].exit()->code, 5);
  EXPECT_TRUE(std::filesystem::exists(folder / "cleaned"));
  EXPECT_EQ(children[2].exit()->signal, SIGKILL);
  for (const ChildProcess& child : children) EXPECT_FALSE(Exists(child.pid())) << child.name();
  close(held[0]);
  close(held[1]);
}

TEST(StopAllChildren, EndsThatHaveBeenAreLeftAlone) {
  std::vector<ChildProcess> children;
  children.push_back(Shell("exit 3"));
  ASSERT_TRUE(WaitFor(children, kLong, AllEnded));
  StopAll(children, kLong);
  EXPECT_EQ(children[0].exit()->code, 3);
  children[0].Signal(SIGKILL);  // Its pid may be another process's by now.
  children.clear();
  StopAll(children, kLong);
}

TEST(OwnProgramPath, IsThatOfTheRunningProgram) {
  EXPECT_EQ(OwnProgram(), std::filesystem::read_symlink("/proc/self/exe").string());
}

}  // namespace
}  // namespace dt::cli
