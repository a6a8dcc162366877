// Goal: what a child writes reaches the parent's standard error by whole lines, nothing is lost,
// and a log in JSON stays one. Method: a pipe that the test writes to, piece by piece.
#include "cli/process/child_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/log.h"

namespace dt::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ChildLogTest : public ::testing::Test {
 protected:
  ChildLogTest() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    child_ = ends[1];
    log_.emplace("server 1", ends[0]);
  }
  ~ChildLogTest() override {
    if (child_ >= 0) close(child_);
  }
  void Write(const std::string& text) {
    ASSERT_EQ(write(child_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void End() { close(std::exchange(child_, -1)); }
  // What the parent writes meanwhile.
  std::string PassOn() {
    testing::internal::CaptureStderr();
    log_->PassOn();
    return testing::internal::GetCapturedStderr();
  }

  std::optional<ChildLog> log_;
  int child_ = -1;
};

TEST_F(ChildLogTest, ALineIsPassedOnWhenItIsWhole) {
  EXPECT_EQ(PassOn(), "") << "it does not wait";
  Write("first\nsec");
  EXPECT_EQ(PassOn(), "first\n");
  Write("o");
  EXPECT_EQ(PassOn(), "");
  Write("nd\nthird\n");
  EXPECT_EQ(PassOn(), "second\nthird\n");
  EXPECT_THAT(log_->last_lines(), ElementsAre("first", "second", "third"));
}

TEST_F(ChildLogTest, AnEndWithoutALineFeedIsALine) {
  Write("a\nthe last words");
  EXPECT_EQ(PassOn(), "a\n");
  End();
  EXPECT_EQ(PassOn(), "the last words\n");
  EXPECT_EQ(PassOn(), "") << "after the end there is nothing";
  EXPECT_THAT(log_->last_lines(), ElementsAre("a", "the last words"));
}

TEST_F(ChildLogTest, AnEndWithoutAWordIsNoLine) {
  End();
  EXPECT_EQ(PassOn(), "");
  EXPECT_THAT(log_->last_lines(), IsEmpty());
}

TEST_F(ChildLogTest, EmptyLinesAreLines) {
  Write("\n\na\n\n");
  EXPECT_EQ(PassOn(), "\n\na\n\n");
  EXPECT_THAT(log_->last_lines(), ElementsAre("", "", "a", ""));
}

TEST_F(ChildLogTest, TheLastTwentyLinesAreKept) {
  for (int i = 1; i <= 45; ++i) {
    Write(std::to_string(i) + "\n");
    if (i % 7 == 0) PassOn();
  }
  PassOn();
  ASSERT_EQ(log_->last_lines().size(), 20u);
  EXPECT_EQ(log_->last_lines().front(), "26");
  EXPECT_EQ(log_->last_lines().back(), "45");
}

// Without a bound a child that writes no line feed would take all memory.
TEST_F(ChildLogTest, AVeryLongLineIsPassedOnInPieces) {
  const std::string half(40'000, 'x');
  Write(half);
  EXPECT_EQ(PassOn(), "") << "it may still become a line";
  Write(half);
  const std::string piece = PassOn();
  EXPECT_GE(piece.size(), size_t{64} << 10);
  Write("end\n");
  const std::string all = piece + PassOn();
  EXPECT_EQ(std::ranges::count(all, 'x'), 80'000) << "nothing is lost";
  EXPECT_TRUE(all.ends_with("end\n"));
}

TEST_F(ChildLogTest, AMovedLogGoesOnWhereItWas) {
  Write("first\nsec");
  PassOn();
  ChildLog moved = *std::move(log_);
  log_ = std::move(moved);
  Write("ond\n");
  EXPECT_EQ(PassOn(), "second\n");
  EXPECT_THAT(log_->last_lines(), ElementsAre("first", "second"));
}

class JsonChildLogTest : public ChildLogTest {
 protected:
  JsonChildLogTest() { SetLogFormat(LogFormat::kJson); }
  ~JsonChildLogTest() override { SetLogFormat(LogFormat::kText); }
};

TEST_F(JsonChildLogTest, LinesOfJsonPassAndOthersBecomeTheTextOfAnEvent) {
  const std::string good = R"({"event":"server.started","pid":7})";
  const std::string others[] = {"terminate called", "{not json}", "[1]", "7", "", "{\"a\":1} x"};
  Write(good + "\n");
  EXPECT_EQ(PassOn(), good + "\n");
  for (const std::string& line : others) {
    Write(line + "\n");
    const std::string passed_on = PassOn();
    ASSERT_TRUE(passed_on.ends_with("\n")) << line;
    const nlohmann::json event = nlohmann::json::parse(passed_on, nullptr, false);
    ASSERT_TRUE(event.is_object()) << passed_on;
    EXPECT_EQ(event.value("event", ""), "process.printed") << passed_on;
    EXPECT_EQ(event.value("name", ""), "server 1") << passed_on;
    EXPECT_EQ(event.value("text", "?"), line) << passed_on;
  }
  EXPECT_EQ(log_->last_lines().size(), std::size(others) + 1) << "as they were written";
  EXPECT_EQ(log_->last_lines()[1], "terminate called");
}

}  // namespace
}  // namespace dt::cli
