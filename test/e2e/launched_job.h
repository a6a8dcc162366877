// A job under `launch` whose processes meet misfortunes, and the same job undisturbed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/tiny_job.h"

namespace dt::test {

class LaunchedJob : public ::testing::Test {
 protected:
  void WriteJob(const TinyJobOptions& options) { job_ = WriteTinyJob(folder_, options); }

  // The checksums of the job, trained in one process.
  std::string Undisturbed(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"train",    job_,       "--set",
                                          "job=calm", "--result", "calm.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramEnd calm = RunProgram(folder_.path(), arguments, std::chrono::seconds(250));
    EXPECT_EQ(calm.exit_code, 0) << calm.output;
    return ChecksumOf(folder_, "calm.json");
  }

  // Its result goes to launched.json.
  void Launch(const std::string& name, const std::vector<std::string>& more = {}) {
    name_ = JobNameOfOurs(name);
    mark_ = "job=" + name_;
    std::vector<std::string> arguments = {
        "launch", job_, "--set", mark_, "--result", "launched.json", "--no-progress"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    launch_ = std::make_unique<Program>(folder_.path(), arguments);
  }
  bool HasCheckpointOf(uint64_t step) const {
    const std::vector<std::string> saved = CheckpointsOf(folder_, name_);
    return !saved.empty() && StepOf(saved.back()) >= step;
  }
  // How many events of a kind the result has. REQUIRES: the job has ended.
  size_t EventsOf(const std::string& kind) const {
    const std::string result = folder_.Read("launched.json");
    size_t found = 0;
    const std::string words = "\"kind\": \"" + kind + "\"";
    for (size_t at = result.find(words); at != std::string::npos; at = result.find(words, at + 1)) {
      ++found;
    }
    return found;
  }
  bool Reaches(uint64_t step) {
    return Eventually(std::chrono::seconds(40), [&] { return HasCheckpointOf(step); });
  }
  std::vector<pid_t> Workers() const { return ProcessesWith(mark_, "worker"); }
  void ExpectEnd(std::chrono::seconds within = std::chrono::seconds(90)) {
    const ProgramEnd end = launch_->Wait(within);
    ASSERT_EQ(end.exit_code, 0) << end.output;
    EXPECT_TRUE(ProcessesWith(mark_).empty());
  }

  const TempFolder folder_;
  std::string job_, name_, mark_;
  std::unique_ptr<Program> launch_;
};

}  // namespace dt::test
