// A job whose servers and workers each have a network namespace of their own, so that they talk to
// one another over TCP, and links can be cut. Processes that have ended are started again, as a
// supervisor does.
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/http_get.h"
#include "test/support/net_spaces.h"
#include "test/support/tiny_job.h"

namespace dt::test {

struct SpacedJobOptions {
  std::string job;  // Path of the job file.
  std::vector<std::string> settings;
  uint32_t servers = 2, workers = 3;
};

// Servers have the first spaces, and workers those after them.
class SpacedJob : public ::testing::Test {
 protected:
  using Json = nlohmann::json;
  using seconds = std::chrono::seconds;

  void Start(SpacedJobOptions options) {
    auto spaces = NetSpaces::Make(options.servers + options.workers);
    if (!spaces.ok()) GTEST_SKIP() << "this needs network namespaces: " << spaces.status();
    spaces_.emplace(*std::move(spaces));
    options_ = std::move(options);
    StartScheduler();
    ASSERT_TRUE(Eventually(seconds(30), [&] { return !RunFile("/http").empty(); })) << Text();
    processes_.resize(options_.servers + options_.workers);
    for (uint32_t space = 0; space < processes_.size(); ++space) StartIn(space);
    ASSERT_TRUE(GoesOn()) << Text();
  }
  void StartScheduler() {
    scheduler_ = std::make_unique<Program>(
        folder_.path(),
        With({"scheduler", options_.job, "--listen", Scheduler(), "--result", "spaced.json"}));
  }

  // Waits until the job has all its processes, and has done steps while this looked on.
  bool GoesOn(seconds within = seconds(40)) {
    std::optional<uint64_t> before;
    return Eventually(within, [&] {
      Supervise();
      if (scheduler_->HasEnded()) return true;
      const HttpAnswer answer = HttpGet(RunFile("/http") + "status");
      if (answer.status != 200) return false;
      const Json status = Json::parse(answer.body);
      if (status["phase"] != "running" || !status["recovers"].empty()) return false;
      if (status["processes"].size() < processes_.size()) return false;
      const auto now = status["step"].get<uint64_t>();
      if (before.has_value() && now > *before + 5) return true;
      if (!before.has_value() || now < *before) before = now;
      return false;
    });
  }
  void ExpectEnd(seconds within) {
    const bool ended = Eventually(within, [&] {
      Supervise();
      return scheduler_->HasEnded();
    });
    ASSERT_TRUE(ended) << Text();
    ASSERT_EQ(scheduler_->Wait(seconds(1)).exit_code, 0) << Text();
    result_ = Json::parse(folder_.Read("spaced.json"));
  }
  // The job's bits are those of the same job in one process, which nothing happens to.
  void ExpectUndisturbedBits(seconds within = seconds(60)) {
    std::vector<std::string> arguments = {"train", options_.job, "--result", "calm.json"};
    for (const std::string& each : options_.settings) {
      arguments.insert(arguments.end(), {"--set", each});
    }
    arguments.insert(arguments.end(), {"--set", "job=calm"});
    const ProgramEnd calm = RunProgram(folder_.path(), arguments, within);
    ASSERT_EQ(calm.exit_code, 0) << calm.output;
    EXPECT_EQ(ChecksumOf(folder_, "spaced.json"), ChecksumOf(folder_, "calm.json")) << text_;
  }
  // REQUIRES: the job has ended.
  std::vector<Json> EventsOf(const std::string& kind) const {
    std::vector<Json> found;
    for (const Json& event : result_["events"]) {
      if (event["kind"] == kind) found.push_back(event);
    }
    return found;
  }
  std::string Text() const {
    std::string text = text_ + scheduler_->Output();
    for (const auto& process : processes_) text += process ? "\n" + process->Output() : "";
    return text;
  }
  // "add": from now on none of the packets of one gets to the other; "del": they do again.
  void Part(const char* change, uint32_t one, uint32_t other) const {
    for (const auto& [from, to] : {std::pair(one, other), std::pair(other, one)}) {
      const std::string route =
          fmt::format("ip route {} unreachable {}/32", change, NetSpaces::AddressIn(to));
      spaces_->Run(from, [&] { ASSERT_EQ(std::system(route.c_str()), 0); });
    }
  }

  static constexpr const char* kRun = "spaced";
  TempFolder folder_;
  SpacedJobOptions options_;
  std::optional<NetSpaces> spaces_;
  std::string text_;  // For people: what has happened.
  std::unique_ptr<Program> scheduler_;
  std::vector<std::unique_ptr<Program>> processes_;  // By space.
  Json result_;                                      // When the job has ended.

 private:
  static std::string Scheduler() { return fmt::format("tcp://{}:7000", NetSpaces::Address()); }
  std::vector<std::string> With(std::vector<std::string> arguments) const {
    for (const std::string& each : options_.settings) {
      arguments.insert(arguments.end(), {"--set", each});
    }
    for (const std::string& each :
         {fmt::format("job={}", kRun), fmt::format("cluster.servers={}", options_.servers),
          fmt::format("cluster.workers={}", options_.workers), std::string("cluster.lease=1s"),
          std::string("cluster.replicas=2")}) {
      arguments.insert(arguments.end(), {"--set", each});
    }
    arguments.insert(arguments.end(), {"--log-level", "info"});
    return arguments;
  }
  void StartIn(uint32_t space) {
    const std::string address = NetSpaces::AddressIn(space);
    const bool serves = space < options_.servers;
    spaces_->Run(space, [&] {
      processes_[space] = std::make_unique<Program>(
          folder_.path(),
          With({serves ? "server" : "worker", options_.job, "--scheduler", Scheduler(), "--listen",
                serves ? fmt::format("tcp://{}:0", address) : address}));
    });
  }
  void Supervise() {
    for (uint32_t space = 0; space < processes_.size(); ++space) {
      if (processes_[space]->HasEnded() && !scheduler_->HasEnded()) StartIn(space);
    }
  }
  std::string RunFile(const std::string& pointer) const {
    return TextAt(folder_, fmt::format("runs/{}/run.json", kRun), pointer);
  }
};

}  // namespace dt::test
