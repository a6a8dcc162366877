// Goal: workers and servers whose links are cut are replaced, and of two workers that do not reach
// each other one leaves; the job ends with the bits of an undisturbed one. Method: every process in
// a network namespace of its own, so that workers talk to one another over TCP; the test cuts links
// and routes, and starts processes again that have ended, as a supervisor does.
#include <cstdlib>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/http_get.h"
#include "test/support/net_spaces.h"
#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kServers = 2, kWorkers = 3;

class Links : public ::testing::Test {
 protected:
  void SetUp() override {
    auto spaces = NetSpaces::Make(kServers + kWorkers);
    if (!spaces.ok()) GTEST_SKIP() << "this needs network namespaces: " << spaces.status();
    spaces_.emplace(*std::move(spaces));
  }
  void Start(uint32_t epochs) {
    job_ = WriteTinyJob(folder_, {.epochs = epochs,
                                  .slices = 6,
                                  .servers = kServers,
                                  .workers = kWorkers,
                                  .more = "checkpoint: {every: 50}"});
    StartScheduler();
    ASSERT_TRUE(Eventually(seconds(30), [&] { return !RunFile("/http").empty(); })) << Text();
    processes_.resize(kServers + kWorkers);
    for (uint32_t space = 0; space < processes_.size(); ++space) StartIn(space);
    ASSERT_TRUE(GoesOn()) << Text();
  }
  // The job's own settings, on every process.
  std::vector<std::string> With(std::vector<std::string> arguments) const {
    for (const char* each : {"job=links", "cluster.lease=1s", "cluster.replicas=2"}) {
      arguments.insert(arguments.end(), {"--set", each});
    }
    return arguments;
  }
  static std::string Scheduler() { return fmt::format("tcp://{}:7000", NetSpaces::Address()); }
  void StartScheduler() {
    scheduler_ = std::make_unique<Program>(
        folder_.path(),
        With({"scheduler", job_, "--listen", Scheduler(), "--result", "links.json"}));
  }
  void StartIn(uint32_t space) {
    const std::string address = NetSpaces::AddressIn(space);
    const bool serves = space < kServers;
    spaces_->Run(space, [&] {
      processes_[space] = std::make_unique<Program>(
          folder_.path(),
          With({serves ? "server" : "worker", job_, "--scheduler", Scheduler(), "--listen",
                serves ? fmt::format("tcp://{}:0", address) : address}));
    });
  }
  void Supervise() {
    for (uint32_t space = 0; space < processes_.size(); ++space) {
      if (processes_[space]->HasEnded() && !scheduler_->HasEnded()) StartIn(space);
    }
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
  void ExpectEndOf(uint32_t epochs) {
    const bool ended = Eventually(seconds(120), [&] {
      Supervise();
      return scheduler_->HasEnded();
    });
    ASSERT_TRUE(ended) << Text();
    ASSERT_EQ(scheduler_->Wait(seconds(1)).exit_code, 0) << Text();
    const ProgramEnd calm = RunProgram(
        folder_.path(),
        {"train", job_, "--set", fmt::format("train.epochs={}", epochs), "--result", "calm.json"});
    ASSERT_EQ(calm.exit_code, 0) << calm.output;
    EXPECT_EQ(ChecksumOf(folder_, "links.json"), ChecksumOf(folder_, "calm.json")) << text_;
  }
  std::vector<std::string> LostWorkers() const {
    std::vector<std::string> how;
    const Json result = Json::parse(folder_.Read("links.json"));
    for (const Json& event : result["events"]) {
      if (event["kind"] == "worker_lost") how.push_back(event["how"]);
    }
    return how;
  }
  std::string RunFile(const std::string& pointer) const {
    return TextAt(folder_, "runs/links/run.json", pointer);
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

  TempFolder folder_;
  std::optional<NetSpaces> spaces_;
  std::string job_, text_;
  std::unique_ptr<Program> scheduler_;
  std::vector<std::unique_ptr<Program>> processes_;  // By space.
};

TEST_F(Links, OnesThatAreCutLoseNothing) {
  constexpr uint32_t kEpochs = 150;
  Start(kEpochs);
  std::mt19937 random{3};
  for (int fault = 0; fault < 6 && !HasFailure(); ++fault) {
    const auto space =
        static_cast<uint32_t>(fault < 2 ? kServers + fault : random() % processes_.size());
    const milliseconds lasts(fault % 2 == 0 ? 2500 : 200 + static_cast<int>(random() % 600));
    text_ += fmt::format("space {} is cut off for {} ms\n", space, lasts.count());
    ASSERT_TRUE(spaces_->Cut(space).ok());
    Eventually(lasts, [] { return false; });
    ASSERT_TRUE(spaces_->Join(space).ok());
    ASSERT_TRUE(GoesOn()) << Text();
  }
  EXPECT_FALSE(scheduler_->HasEnded()) << "the job was too short";
  ExpectEndOf(kEpochs);
  EXPECT_GE(LostWorkers().size(), 1U);
}

// Nothing else is wrong with them.
TEST_F(Links, TwoWorkersThatAreCutFromEachOtherForAMinutePart) {
  constexpr uint32_t kEpochs = 60;
  Start(kEpochs);
  Part("add", kServers, kServers + 2);
  // The one that has joined later.
  const auto leaves = [&](uint32_t space) {
    const std::string said = processes_[space]->Output();
    return processes_[space]->HasEnded() &&
           said.find("the job has gone on without it") != std::string::npos;
  };
  ASSERT_TRUE(Eventually(seconds(90), [&] { return leaves(kServers) || leaves(kServers + 2); }))
      << Text();
  Part("del", kServers, kServers + 2);
  ExpectEndOf(kEpochs);
  const std::vector<std::string> lost = LostWorkers();
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_NE(lost[0].find(" up, which "), std::string::npos) << lost[0];
}

}  // namespace
}  // namespace dt::test
