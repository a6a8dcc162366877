// Goal: the launcher's report of a process's end arrives whole and once, whatever else is on the
// pipe. Method: the test holds both ends of a pipe.
#include "common/control/process_end.h"

#include <csignal>
#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace dt {
namespace {

class ProcessEndTest : public ::testing::Test {
 protected:
  ProcessEndTest() {
    signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0);
  }
  ~ProcessEndTest() override {
    for (const int end : ends_) close(end);
  }
  void Write(std::string_view text) {
    ASSERT_EQ(write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  int ends_[2] = {-1, -1};
};

TEST_F(ProcessEndTest, ArrivesAsItWasSent) {
  ProcessEndReader reader(ends_[0]);
  EXPECT_TRUE(reader.Take().empty()) << "does not wait";
  ASSERT_TRUE(SendProcessEnd(ends_[1], {"worker 3", 4711, "was \"killed\"\nby 9", false}).ok());
  ASSERT_TRUE(SendProcessEnd(ends_[1], {"server 1", 4712, "exited", true}).ok());
  const std::vector<ProcessEnd> ends = reader.Take();
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].name, "worker 3");
  EXPECT_EQ(ends[0].pid, 4711);
  EXPECT_EQ(ends[0].how, "was \"killed\"\nby 9");
  EXPECT_FALSE(ends[0].returns);
  EXPECT_TRUE(ends[1].returns);
  EXPECT_TRUE(reader.Take().empty());
}

TEST_F(ProcessEndTest, ALineIsTakenWhenItIsWholeAndOtherLinesArePassedOver) {
  ProcessEndReader reader(ends_[0]);
  Write("[1]\nnothing\n{\"name\": \"worker 3\", \"pid\"");
  EXPECT_TRUE(reader.Take().empty());
  Write(": 7}\n");
  const std::vector<ProcessEnd> ends = reader.Take();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].pid, 7);
}

TEST_F(ProcessEndTest, AClosedPipeIsAnErrorForOneAndNothingForTheOther) {
  ProcessEndReader reader(ends_[0]);
  close(ends_[1]);
  ends_[1] = -1;
  EXPECT_TRUE(reader.Take().empty());
  EXPECT_TRUE(reader.Take().empty());
  EXPECT_FALSE(SendProcessEnd(ends_[1], {"worker 3", 7, "exited", false}).ok());
  EXPECT_TRUE(ProcessEndReader(-1).Take().empty());
}

}  // namespace
}  // namespace dt
