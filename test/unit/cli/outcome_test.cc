// Goal: a command ends with one sentence, one exit code, and the result file if one is asked for.
// Method: each kind of error, with and without a place, a hint, a parent, a signal.
#include "cli/outcome.h"

#include <csignal>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/log.h"
#include "common/base/pause.h"
#include "common/storage/json_file.h"
#include "test/support/scratch_folder.h"

namespace dt::cli {
namespace {

using ::testing::HasSubstr;

std::string PrintedError(const Status& status) {
  testing::internal::CaptureStderr();
  PrintError(status);
  return testing::internal::GetCapturedStderr();
}

TEST(PrintError, ASentenceThenThePlaceThenTheHint) {
  const Status bare = Unavailable("the disk is full");
  EXPECT_EQ(PrintedError(WithHint(WithWhere(bare, "/data/rows"), "make room")),
            "dovetail: the disk is full (/data/rows)\n  make room\n");
  EXPECT_EQ(PrintedError(WithWhere(bare, "/data/rows")),
            "dovetail: the disk is full (/data/rows)\n");
}

TEST(PrintError, APlaceThatTheSentenceNamesIsNotSaidTwice) {
  EXPECT_EQ(PrintedError(WithWhere(NotFound("there is no file a.yaml"), "a.yaml")),
            "dovetail: there is no file a.yaml\n");
  EXPECT_EQ(PrintedError(Unavailable("the disk is full")), "dovetail: the disk is full\n")
      << "nor is a place that there is not";
}

TEST(PrintError, NoTextSteersTheTerminal) {
  const std::string printed = PrintedError(WithHint(Unavailable("\x1b[2Jgone"), "beep \x07 \xff"));
  EXPECT_EQ(printed, "dovetail: \\x1b[2Jgone\n  beep \\x07 \\xff\n");
}

TEST(PrintError, WhereTheLogIsJsonItIsALineOfIt) {
  SetLogFormat(LogFormat::kJson);
  const std::string printed = PrintedError(WithHint(WithWhere(Invalid("no"), "a:3"), "do"));
  SetLogFormat(LogFormat::kText);
  const Result<Json> line = ParseJson(printed, "the log");
  ASSERT_TRUE(line.ok()) << printed;
  EXPECT_EQ(TextOf(*line, "what"), "no");
  EXPECT_EQ(TextOf(*line, "where"), "a:3");
  EXPECT_EQ(TextOf(*line, "hint"), "do");
}

TEST(PrintText, ControlCharactersAreWrittenOutAndLineFeedsAreNot) {
  testing::internal::CaptureStdout();
  Print("{}|{}\n", "a\x1b", "b\tc");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "a\\x1b|b\\x09c\n");
}

TEST(Counted, OneIsSingular) {
  EXPECT_EQ(Counted(0, "epoch"), "0 epochs");
  EXPECT_EQ(Counted(1, "epoch"), "1 epoch");
  EXPECT_EQ(Counted(2, "epoch"), "2 epochs");
}

struct Ended {
  int code = 0;
  std::string errors;
};
Ended EndWith(const CommandLine& line, const Status& status) {
  testing::internal::CaptureStderr();
  Ended ended;
  ended.code = EndWithError(line, "a job", status);
  ended.errors = testing::internal::GetCapturedStderr();
  return ended;
}

TEST(EndWithError, TheExitCodeSaysWhoseMistakeItIs) {
  const std::pair<Status, int> cases[] = {
      {Invalid("x"), 2},     {NotFound("x"), 2}, {NotYet("x"), 2},   {Malformed("x"), 3},
      {Unavailable("x"), 1}, {Timeout("x"), 1},  {DataLoss("x"), 1}, {Internal("x"), 1}};
  for (const auto& [status, code] : cases) {
    const Ended ended = EndWith({}, status);
    EXPECT_EQ(ended.code, code) << status;
    EXPECT_EQ(ended.errors, "dovetail: x\n");
  }
}

TEST(EndWithError, TheResultFileHasTheErrorAndTheJob) {
  const test::ScratchFolder folder;
  CommandLine line;
  line.result_path = folder / "new/r.json";
  EXPECT_EQ(EndWith(line, WithWhere(Malformed("a bad line"), "x.csv:3")).code, 3);
  const Result<Json> result = ReadJsonFile(line.result_path);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(TextOf(*result, "job"), "a job");
  EXPECT_EQ(TextOf(*result, "status"), "failed");
  EXPECT_EQ(TextOf(MemberOf(*result, "error"), "what"), "a bad line");
  EXPECT_EQ(TextOf(MemberOf(*result, "error"), "where"), "x.csv:3");
}

TEST(EndWithError, AResultFileThatCannotBeWrittenIsASecondSentence) {
  CommandLine line;
  line.result_path = "/proc/nowhere/r.json";
  const Ended ended = EndWith(line, Invalid("the first"));
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.errors, HasSubstr("dovetail: the first\n"));
  EXPECT_THAT(ended.errors, HasSubstr("/proc/nowhere/r.json"));
}

// Its parent says it, once.
TEST(EndWithError, AChildOfLaunchKeepsQuietAndWritesItsFile) {
  const test::ScratchFolder folder;
  CommandLine line;
  line.child = 3;
  line.result_path = folder / "r.json";
  const Ended ended = EndWith(line, Invalid("the first"));
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.errors, "");
  EXPECT_TRUE(ReadJsonFile(line.result_path).ok());
}

// The handler of signals is one per process, so each of these has a process of its own.
[[noreturn]] void EndJobAfter(int signal_number, const Status& status, const CommandLine& line) {
  StopSignals signals;
  signals.Heed();
  if (signal_number != 0) kill(getpid(), signal_number);
  while (signal_number != 0 && signals.received() == 0) Pause(milliseconds(1));
  JobResult result;
  result.status = status;
  _exit(EndJob(line, result, signals));
}

TEST(EndJob, ASignalGivesTheCodeOfShellsAndIsNamedUnlessTheJobWasComplete) {
  using testing::ExitedWithCode;
  EXPECT_EXIT(EndJobAfter(SIGINT, Cancelled("stopped"), {}), ExitedWithCode(130),
              "^dovetail: signal 2: stopped");
  EXPECT_EXIT(EndJobAfter(SIGTERM, Unavailable("full"), {}), ExitedWithCode(143),
              "^dovetail: signal 15: full");
  EXPECT_EXIT(EndJobAfter(SIGHUP, Cancelled("stopped"), {}), ExitedWithCode(129), "signal 1");
  EXPECT_EXIT(EndJobAfter(SIGTERM, OkStatus(), {}), ExitedWithCode(0), "^$");
  EXPECT_EXIT(EndJobAfter(0, Malformed("a bad line"), {}), ExitedWithCode(3),
              "^dovetail: a bad line");
}

// Who asked for the file would take the job for one that never ended.
TEST(EndJob, AJobThatIsCompleteButWhoseFileCannotBeWrittenHasFailed) {
  CommandLine line;
  line.result_path = "/proc/nowhere/r.json";
  EXPECT_EXIT(EndJobAfter(0, OkStatus(), line), testing::ExitedWithCode(1), "/proc/nowhere/r.json");
  EXPECT_EXIT(EndJobAfter(0, Malformed("a bad line"), line), testing::ExitedWithCode(3),
              "a bad line");
}

}  // namespace
}  // namespace dt::cli
