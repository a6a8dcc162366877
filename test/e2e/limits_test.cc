// Goal: a job whose processes may have few addresses trains all the same, over TCP; with too few of
// them it ends with a sentence, never with a signal. Method: the real program under ulimit -v.
#include <cstdlib>
#include <sys/stat.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

class Limits : public ::testing::Test {
 protected:
  ~Limits() override { setenv("DT_PROGRAM", program_.c_str(), 1); }
  // From now on, of each process of the program.
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
      EXPECT_TRUE(end.exit_code == 0 || end.exit_code == 1) << end.output;
      EXPECT_EQ(end.output.find("signal"), std::string::npos) << end.output;
      EXPECT_EQ(end.output.find("terminate"), std::string::npos) << end.output;
      EXPECT_EQ(end.output.find("check failed"), std::string::npos) << end.output;
      const bool told = end.output.find("ulimit") != std::string::npos;
      EXPECT_TRUE(end.exit_code == 0 || told) << end.output;
    }
  }
}

}  // namespace
}  // namespace dt::test
